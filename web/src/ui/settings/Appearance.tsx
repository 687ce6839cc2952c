import { useState } from "react";
import { currentTheme, setTheme, type Theme } from "../theme.ts";
import { Button } from "../widgets/buttons.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function Appearance() {
  const [theme, setCurrent] = useState(currentTheme);
  const [permission, setPermission] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  return (
    <>
      <Segments
        label="Theme"
        options={THEMES}
        value={theme}
        onChange={(name) => {
          setTheme(name);
          setCurrent(name);
        }}
      />
      <p className={text.row}>
        <span>Notify me when an answer is ready in a background tab</span>
        {permission === "granted" ? (
          <strong>On</strong>
        ) : (
          <Button
            small
            disabled={permission === "denied"}
            onClick={() => void Notification.requestPermission().then(setPermission)}
          >
            {permission === "denied" ? "Blocked by the browser" : "Turn on notifications"}
          </Button>
        )}
      </p>
    </>
  );
}

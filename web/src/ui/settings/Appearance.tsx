import { useState } from "react";
import { setTheme, type Theme, theme } from "../theme.ts";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function Appearance() {
  const [now, setNow] = useState(theme);
  const [allowed, setAllowed] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  return (
    <>
      <fieldset className="segments">
        <legend className="visually-hidden">Theme</legend>
        {THEMES.map(([name, text]) => (
          <label key={name}>
            <input
              type="radio"
              name="theme"
              checked={now === name}
              onChange={() => {
                setTheme(name);
                setNow(name);
              }}
            />
            {text}
          </label>
        ))}
      </fieldset>
      <p className="row">
        <span>Say so when an answer is ready while the tab is hidden:</span>
        {allowed === "granted" ? (
          <strong>on</strong>
        ) : (
          <button
            type="button"
            className="button small"
            disabled={allowed === "denied"}
            onClick={() => void Notification.requestPermission().then(setAllowed)}
          >
            {allowed === "denied" ? "Not allowed by the browser" : "Allow notifications"}
          </button>
        )}
      </p>
    </>
  );
}

import { useState } from "react";
import { useStore } from "../context.ts";
import { singleKeysOn, turnSingleKeys } from "../single-key-shortcuts.ts";
import { currentTheme, setTheme, type Theme } from "../theme.ts";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function Appearance() {
  const [theme, setCurrent] = useState(currentTheme);
  const singleKeys = useStore(singleKeysOn);
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
      <label className={forms.checkbox}>
        <input type="checkbox" checked={singleKeys} onChange={({ target }) => turnSingleKeys(target.checked)} />
        Single-key shortcuts (J, K, R and ?)
      </label>
    </>
  );
}

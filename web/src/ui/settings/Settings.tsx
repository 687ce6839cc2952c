import { type ComponentType, useEffect } from "react";
import { Alert } from "../widgets/Alert.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import { About } from "./About.tsx";
import { Access } from "./Access.tsx";
import { Appearance } from "./Appearance.tsx";
import { Data } from "./Data.tsx";
import { McpServers } from "./McpServers.tsx";
import { Memory } from "./Memory.tsx";
import { Models } from "./Models.tsx";
import styles from "./Settings.module.css";
import { Tools } from "./Tools.tsx";
import { type SettingsProps, useSettings } from "./use-settings.ts";

const SECTIONS: readonly (readonly [string, string, ComponentType<SettingsProps>])[] = [
  ["models", "Models", Models],
  ["tools", "Agents and tools", Tools],
  ["mcp", "MCP servers", McpServers],
  ["memory", "Memory", Memory],
  ["appearance", "Appearance", Appearance],
  ["access", "Password and tokens", Access],
  ["data", "Data", Data],
  ["about", "About", About],
];

export default function Settings() {
  const { problem, ...props } = useSettings();
  useEffect(() => {
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, []);
  const shown = SECTIONS.filter(([id]) => id !== "memory" || props.settings?.memory);
  return (
    <ScrollingScreen title="Settings">
      <div className={styles.settings}>
        <nav className={styles.nav} aria-label="Settings">
          {shown.map(([id, name]) => (
            <a key={id} href={`#${id}`}>
              {name}
            </a>
          ))}
        </nav>
        <div className={styles.sections}>
          {problem && <Alert text={problem} />}
          {shown.map(([id, name, Body]) => (
            <section key={id} id={id} className={styles.section} aria-label={name}>
              <h2>{name}</h2>
              <Body {...props} />
            </section>
          ))}
        </div>
      </div>
    </ScrollingScreen>
  );
}

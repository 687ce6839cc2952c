// What can be set: models and keys, tools and their servers, memory, looks, who may come in; what can be taken out and in;
// and how the server is.

import { type ComponentType, useEffect } from "react";
import { ScreenHead } from "./ScreenHead.tsx";
import { About } from "./settings/About.tsx";
import { Access } from "./settings/Access.tsx";
import { Appearance } from "./settings/Appearance.tsx";
import { Data } from "./settings/Data.tsx";
import { Mcp } from "./settings/Mcp.tsx";
import { Memory } from "./settings/Memory.tsx";
import { Models } from "./settings/Models.tsx";
import { Tools } from "./settings/Tools.tsx";
import { type SettingsProps, useSettings } from "./settings/use.ts";

const SECTIONS: readonly (readonly [string, string, ComponentType<SettingsProps>])[] = [
  ["models", "Models", Models],
  ["tools", "Agents and tools", Tools],
  ["mcp", "MCP servers", Mcp],
  ["memory", "Memory", Memory],
  ["appearance", "Appearance", Appearance],
  ["access", "Password and tokens", Access],
  ["data", "Data", Data],
  ["about", "About", About],
];

export default function Settings() {
  const { problem, ...props } = useSettings();
  useEffect(() => {
    document.title = "Settings · Holdfast";
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, []);
  const shown = SECTIONS.filter(([id]) => id !== "memory" || props.settings?.memory);
  return (
    <div className="screen wide">
      <ScreenHead title="Settings" />
      <div className="settings">
        <nav className="settings-nav" aria-label="Settings">
          {shown.map(([id, name]) => (
            <a key={id} href={`#${id}`}>
              {name}
            </a>
          ))}
        </nav>
        <div className="settings-body">
          {problem && (
            <p className="problem" role="alert">
              {problem}
            </p>
          )}
          {shown.map(([id, name, Body]) => (
            <section key={id} id={id} className="setting" aria-label={name}>
              <h2 className="section">{name}</h2>
              <Body {...props} />
            </section>
          ))}
        </div>
      </div>
    </div>
  );
}

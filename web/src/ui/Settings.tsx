// What can be set: looks, models and keys, tools, tokens; what can be taken out and in; and how the server is.

import { useEffect, useState } from "react";
import type { Api, Problem } from "../core/api.ts";
import { useApp } from "./context.ts";
import { ScreenHead } from "./ScreenHead.tsx";
import { Appearance } from "./settings/Appearance.tsx";
import { Data } from "./settings/Data.tsx";
import { Models } from "./settings/Models.tsx";
import { Section } from "./settings/Section.tsx";
import { Tokens } from "./settings/Tokens.tsx";
import { Tools } from "./settings/Tools.tsx";
import { type SettingsProps, useSettings } from "./settings/use.ts";

export default function Settings() {
  const { problem, ...props } = useSettings();
  useEffect(() => {
    document.title = "Settings · Holdfast";
  }, []);
  return (
    <div className="screen wide">
      <ScreenHead title="Settings" />
      <div className="settings">
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <Models {...props} />
        <Tools {...props} />
        <Appearance />
        <Tokens />
        <Data />
        <About {...props} />
      </div>
    </div>
  );
}

async function logOut(api: Api): Promise<void> {
  await api.post("/api/logout").catch(() => undefined);
  location.assign("/login");
}

function About({ settings }: SettingsProps) {
  const { api } = useApp();
  const [health, setHealth] = useState("…");
  useEffect(() => {
    api.get("/readyz").then(
      () => setHealth("Storage answers and turns are taken."),
      (error: Problem) => setHealth(error.message),
    );
  }, [api]);
  return (
    <Section title="About">
      <p>
        Holdfast keeps every word in a journal before it shows it. <a href="/docs">The API</a>,{" "}
        <a href="/metrics">metrics</a>.
      </p>
      <p role="status">{health}</p>
      {settings?.password_set && (
        <button type="button" className="button" onClick={() => void logOut(api)}>
          Log out
        </button>
      )}
      {settings && (
        <p className="quiet">
          Version {settings.version}.{" "}
          {settings.password_set ? "A password is set." : "No password: open to this machine alone."}
        </p>
      )}
    </Section>
  );
}

// What can be set here: looks, notices, tokens; what can be seen: models, agents, health; what can be taken out and in.

import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Problem } from "../core/api.ts";
import { useApp, useStore } from "./context.ts";
import { count, when } from "./format.ts";
import { ScreenHead } from "./ScreenHead.tsx";
import { ask } from "./shell.ts";
import { setTheme, type Theme, theme } from "./theme.ts";

export default function Settings() {
  useEffect(() => {
    document.title = "Settings · Holdfast";
  }, []);
  return (
    <div className="screen wide">
      <ScreenHead title="Settings" />
      <div className="settings">
        <Appearance />
        <Models />
        <Tokens />
        <Data />
        <About />
      </div>
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="setting" aria-label={title}>
      <h2 className="section">{title}</h2>
      {children}
    </section>
  );
}

function Appearance() {
  const [now, setNow] = useState(theme);
  const [allowed, setAllowed] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  return (
    <Section title="Appearance">
      <fieldset className="row">
        <legend className="visually-hidden">Theme</legend>
        {(["system", "light", "dark"] as const).map((name: Theme) => (
          <label key={name} className="check">
            <input
              type="radio"
              name="theme"
              checked={now === name}
              onChange={() => {
                setTheme(name);
                setNow(name);
              }}
            />
            {{ system: "As the system", light: "Light", dark: "Dark" }[name]}
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
    </Section>
  );
}

function Models() {
  const app = useApp();
  const { models, agents, defaultModel, loaded } = useStore(app.catalogue);
  return (
    <Section title="Models and agents">
      {loaded && !models.length && (
        <p className="quiet">
          No model was found. Set <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or{" "}
          <code>OPENAI_BASE_URL</code>, or start Ollama or LM Studio on this machine, then start Holdfast again.
        </p>
      )}
      <ul className="runs">
        {models.map((model) => (
          <li key={model.id} className="run">
            <span className={`status ${model.available ? "complete" : "failed"}`}>
              {model.available ? "ready" : "not now"}
            </span>
            <span className="run-title">
              {model.name}
              {model.id === defaultModel && " (default)"}
            </span>
            <span className="quiet run-facts">
              {[model.provider, model.context && `${count(model.context)} tokens`, model.reason]
                .filter(Boolean)
                .join(" · ")}
            </span>
          </li>
        ))}
      </ul>
      <p className="quiet">Agents: {agents.map((agent) => agent.name).join(", ") || "none"}.</p>
      <button type="button" className="button" onClick={() => void app.readCatalogue()}>
        Look again
      </button>
    </Section>
  );
}

interface Token {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
}

function Tokens() {
  const { api } = useApp();
  const [tokens, setTokens] = useState<readonly Token[]>([]);
  const [fresh, setFresh] = useState<string | null>(null);
  const read = () =>
    void api.get<{ items: Token[] }>("/api/tokens").then(
      ({ items }) => setTokens(items),
      () => undefined,
    );
  // biome-ignore lint/correctness/useExhaustiveDependencies: once
  useEffect(read, []);
  const make = async () => {
    const name = await ask("New token", "What it is for", "");
    if (!name?.trim()) return;
    const made = await api.post<Token & { token: string }>("/api/tokens", { name: name.trim() });
    setFresh(made.token);
    read();
  };
  return (
    <Section title="Tokens">
      <p className="quiet">
        Programs show one instead of the password. The password is set with <code>holdfast password</code>.
      </p>
      {fresh && (
        <p className="notice warn">
          <span>
            Copy it now, it is not shown again: <code>{fresh}</code>
          </span>
        </p>
      )}
      <ul className="runs">
        {tokens.map((token) => (
          <li key={token.id} className="run">
            <span className="run-title">{token.name}</span>
            <span className="quiet run-facts">{when(token.created_at)}</span>
            <button
              type="button"
              className="button small"
              onClick={() => void api.call("DELETE", `/api/tokens/${token.id}`).then(read)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
      <button type="button" className="button" onClick={() => void make()}>
        New token
      </button>
    </Section>
  );
}

function Data() {
  const { api, sessions } = useApp();
  const picker = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState<string | null>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      const { items } = await api.importLines(file);
      setSaid(`${items.length} ${items.length === 1 ? "chat was" : "chats were"} imported.`);
      void sessions.refresh();
    } catch (error) {
      setSaid((error as Problem).message);
    }
  };
  return (
    <Section title="Data">
      <p className="quiet">
        A chat is exported from its menu. A backup of everything: <code>holdfast backup</code>.
      </p>
      <button type="button" className="button" onClick={() => picker.current?.click()}>
        Import chats
      </button>
      <input ref={picker} type="file" accept=".jsonl" hidden onChange={(event) => void take(event.target.files?.[0])} />
      {said && <p role="status">{said}</p>}
    </Section>
  );
}

function About() {
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
    </Section>
  );
}

// Who may come in: the password, and tokens for programs.

import { type FormEvent, useEffect, useState } from "react";
import type { Problem } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { when } from "../format.ts";
import { Action, Row, Rows } from "../Rows.tsx";
import { ask } from "../shell.ts";
import { CopyButton } from "../widgets.tsx";
import type { SettingsProps } from "./use.ts";

export function Access(props: SettingsProps) {
  return (
    <>
      <Password {...props} />
      <Tokens />
    </>
  );
}

function Password({ settings, read }: SettingsProps) {
  const { api } = useApp();
  const [said, setSaid] = useState<string | null>(null);
  const has = settings?.password_set ?? false;
  const change = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const [current, fresh] = [String(fields.get("current") ?? ""), String(fields.get("new"))];
    try {
      await api.post("/api/password", { new: fresh, ...(has ? { current } : {}) });
      form.reset();
      setSaid("The password is set. Other browsers have to log in again.");
      await read();
    } catch (error) {
      setSaid((error as Problem).message);
    }
  };
  const leave = async () => {
    await api.post("/api/logout").catch(() => undefined);
    location.assign("/login");
  };
  return (
    <>
      <p className="quiet">
        {has
          ? "A password is set. Whoever comes shows it, or a token."
          : "No password: open to whoever is at this machine, and to nobody else."}
      </p>
      <form className="inline-form" aria-label="Password" onSubmit={(event) => void change(event)}>
        {has && (
          <label>
            Password now
            <input type="password" name="current" autoComplete="current-password" required />
          </label>
        )}
        <label>
          New password
          <input type="password" name="new" autoComplete="new-password" minLength={8} required />
        </label>
        <button type="submit" className="button">
          {has ? "Change" : "Set a password"}
        </button>
        {has && (
          <button type="button" className="button" onClick={() => void leave()}>
            Log out
          </button>
        )}
      </form>
      {said && <p role="status">{said}</p>}
    </>
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
    <>
      <p className="quiet">Programs show a token instead of the password.</p>
      {fresh && (
        <p className="notice warn">
          <span>
            Copy it now, it is not shown again: <code>{fresh}</code>
          </span>
          <CopyButton text={() => fresh} />
        </p>
      )}
      <Rows label="Tokens">
        {tokens.map((token) => (
          <Row key={token.id} title={token.name} facts={[when(token.created_at)]}>
            <Action
              name="Revoke"
              of={token.name}
              onClick={() => void api.call("DELETE", `/api/tokens/${token.id}`).then(read)}
            />
          </Row>
        ))}
      </Rows>
      <button type="button" className="button" onClick={() => void make()}>
        New token
      </button>
    </>
  );
}

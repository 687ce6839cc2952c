import { useEffect, useState } from "react";
import { useApp } from "../context.ts";
import { when } from "../format.ts";
import { ask } from "../shell.ts";
import { Section } from "./Section.tsx";

interface Token {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
}

export function Tokens() {
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

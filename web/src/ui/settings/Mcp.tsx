// Servers whose tools agents may use: those of the configuration, and those that are added here.

import { type FormEvent, useCallback, useEffect, useState } from "react";
import type { Problem } from "../../core/api.ts";
import type { Page } from "../../core/wire.ts";
import { useApp } from "../context.ts";
import { Action, Row, Rows } from "../Rows.tsx";
import { confirm } from "../shell.ts";
import { Dialog } from "../widgets.tsx";

interface Server {
  readonly name: string;
  readonly kind: "stdio" | "http";
  readonly target: string;
  readonly editable: boolean;
  readonly connected: boolean;
  readonly failure: string | null;
}

export function Mcp() {
  const { api } = useApp();
  const [servers, setServers] = useState<readonly Server[]>([]);
  const [adding, setAdding] = useState(false);
  const read = useCallback(async () => {
    await api.get<Page<Server>>("/api/mcp").then(
      ({ items }) => setServers(items),
      () => undefined,
    );
  }, [api]);
  useEffect(() => {
    void read();
  }, [read]);
  return (
    <>
      <p className="quiet">
        Their tools are named <code>server__tool</code> and ask before they do anything, unless a rule says otherwise.
      </p>
      <Rows label="MCP servers">
        {servers.map((server) => (
          <ServerRow key={server.name} server={server} read={read} />
        ))}
      </Rows>
      <button type="button" className="button" onClick={() => setAdding(true)}>
        Add a server
      </button>
      {adding && <AddServer onClose={() => setAdding(false)} onDone={read} />}
    </>
  );
}

function ServerRow({ server, read }: { server: Server; read: () => Promise<void> }) {
  const { api } = useApp();
  const [said, setSaid] = useState<{ text: string; ok: boolean } | null>(null);
  const test = async () => {
    setSaid({ text: "Connecting …", ok: true });
    try {
      const { ok, reason, tools } = await api.post<{ ok: boolean; reason: string | null; tools: string[] }>(
        `/api/mcp/${server.name}/test`,
      );
      setSaid({ text: ok ? `${tools.length} tools: ${tools.join(", ")}` : (reason ?? "It failed."), ok });
    } catch (error) {
      setSaid({ text: (error as Problem).message, ok: false });
    }
    await read();
  };
  const remove = async () => {
    if (!(await confirm(`Remove ${server.name}?`, "Agents can no longer use its tools.", "Remove"))) return;
    await api.call("DELETE", `/api/mcp/${server.name}`).catch(() => undefined);
    await read();
  };
  const state = server.connected
    ? ({ text: "connected", kind: "good" } as const)
    : server.failure
      ? ({ text: "failed", kind: "bad" } as const)
      : ({ text: "at rest", kind: "calm" } as const);
  return (
    <Row
      status={state}
      title={server.name}
      facts={[server.target, !server.editable && "from holdfast.toml"]}
      more={
        (said || server.failure) && (
          <p className={said?.ok ? "quiet" : "bad"} role="status">
            {said?.text ?? server.failure}
          </p>
        )
      }
    >
      <Action name="Test" of={server.name} onClick={() => void test()} />
      {server.editable && <Action name="Remove" of={server.name} onClick={() => void remove()} />}
    </Row>
  );
}

function AddServer({ onClose, onDone }: { onClose: () => void; onDone: () => Promise<void> }) {
  const { api } = useApp();
  const [kind, setKind] = useState<"http" | "stdio">("http");
  const [problem, setProblem] = useState<string | null>(null);
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string) => String(fields.get(name) ?? "").trim();
    const [command = "", ...args] = words(text("command"));
    const body =
      kind === "stdio" ? { command, args } : { url: text("url"), ...(text("token") ? { token: text("token") } : {}) };
    try {
      await api.call("PUT", `/api/mcp/${encodeURIComponent(text("name"))}`, body);
      await onDone();
      onClose();
    } catch (error) {
      setProblem((error as Problem).message);
    }
  };
  return (
    <Dialog name="Add an MCP server" onClose={onClose}>
      <form onSubmit={(event) => void add(event)}>
        <h2>Add an MCP server</h2>
        <fieldset className="segments">
          <legend className="visually-hidden">Kind</legend>
          {(["http", "stdio"] as const).map((name) => (
            <label key={name}>
              <input type="radio" name="kind" checked={kind === name} onChange={() => setKind(name)} />
              {name === "http" ? "At an address" : "A program here"}
            </label>
          ))}
        </fieldset>
        <label>
          Name
          <input name="name" required pattern="[a-z0-9][a-z0-9_\-]{0,31}" title="Small letters, digits, - and _" />
        </label>
        {kind === "http" ? (
          <>
            <label>
              Address
              <input name="url" type="url" placeholder="https://…/mcp" required />
            </label>
            <label>
              Token, if it wants one
              <input name="token" type="password" autoComplete="off" />
            </label>
          </>
        ) : (
          <label>
            Command with arguments
            <input name="command" placeholder="npx -y some-mcp-server" required />
          </label>
        )}
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <div className="row end">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button primary">
            Add
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** As a shell would cut them: quotes keep words together. */
export function words(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

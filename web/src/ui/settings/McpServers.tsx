// MCP servers, from the configuration file or added here.

import { type FormEvent, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpServerResponse, McpServerTestResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import { Item, ItemAction, ItemList, type StatusKind } from "../widgets/ItemList.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import { useItems } from "./use-settings.ts";

export function McpServers() {
  const [servers, reload] = useItems<McpServerResponse>("/api/mcp");
  const [adding, setAdding] = useState(false);
  return (
    <>
      <p className={text.quiet}>
        Tools from MCP servers are named <code>server__tool</code> and need your approval unless a rule allows them.
      </p>
      <ItemList label="MCP servers">
        {servers.map((server) => (
          <ServerItem key={server.name} server={server} reload={reload} />
        ))}
      </ItemList>
      <Button onClick={() => setAdding(true)}>Add server</Button>
      {adding && <AddServerDialog onClose={() => setAdding(false)} onAdded={reload} />}
    </>
  );
}

function statusOf({ connected, failure }: McpServerResponse): { text: string; kind: StatusKind } {
  if (connected) return { text: "Connected", kind: "good" };
  return failure ? { text: "Failed", kind: "bad" } : { text: "Idle", kind: "neutral" };
}

function ServerItem({ server, reload }: { server: McpServerResponse; reload: () => Promise<void> }) {
  const { api } = useApp();
  const [result, setResult] = useState<{ text: string; ok: boolean } | null>(null);
  const test = async () => {
    setResult({ text: "Connecting…", ok: true });
    try {
      const { ok, reason, tools } = await api.post<McpServerTestResponse>(`/api/mcp/${server.name}/test`);
      const found = `${tools.length} ${tools.length === 1 ? "tool" : "tools"}: ${tools.join(", ")}`;
      setResult({ text: ok ? found : (reason ?? "Connection failed."), ok });
    } catch (error) {
      setResult({ text: errorMessage(error), ok: false });
    }
    await reload();
  };
  const remove = async () => {
    const detail = "Agents will no longer be able to use its tools.";
    const { confirmed } = await askConfirmation(`Remove ${server.name}?`, detail, "Remove");
    if (!confirmed) return;
    await api.call("DELETE", `/api/mcp/${server.name}`).catch(() => undefined);
    await reload();
  };
  const failure = server.failure && [server.failure, server.stderr].filter(Boolean).join(". ");
  return (
    <Item
      status={statusOf(server)}
      title={server.name}
      facts={[server.target, !server.editable && "Set in holdfast.toml"]}
      details={
        (result || failure) && (
          <p className={result?.ok ? text.quiet : text.error} role="status">
            {result?.text ?? failure}
          </p>
        )
      }
    >
      <ItemAction name="Test" of={server.name} onClick={() => void test()} />
      {server.editable && <ItemAction name="Remove" of={server.name} onClick={() => void remove()} />}
    </Item>
  );
}

const KINDS = [
  ["http", "Remote (HTTP)"],
  ["stdio", "Local command"],
] as const;

function AddServerDialog({ onClose, onAdded }: { onClose: () => void; onAdded: () => Promise<void> }) {
  const { api } = useApp();
  const [kind, setKind] = useState<"http" | "stdio">("http");
  const [problem, setProblem] = useState<string | null>(null);
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const field = (name: string) => String(fields.get(name) ?? "").trim();
    const [command = "", ...args] = splitCommand(field("command"));
    const remote = { url: field("url"), ...(field("token") ? { token: field("token") } : {}) };
    try {
      await api.call(
        "PUT",
        `/api/mcp/${encodeURIComponent(field("name"))}`,
        kind === "stdio" ? { command, args } : remote,
      );
      await onAdded();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <Dialog name="Add MCP server" onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={(event) => void add(event)}>
        <h2>Add MCP server</h2>
        <Segments label="Type" options={KINDS} value={kind} onChange={setKind} />
        <label>
          Name
          <input name="name" required pattern="[a-z0-9][a-z0-9_\-]{0,31}" title="Lowercase letters, digits, - and _" />
        </label>
        {kind === "http" ? (
          <>
            <label>
              URL
              <input name="url" type="url" placeholder="https://…/mcp" required />
            </label>
            <label>
              Access token (optional)
              <input name="token" type="password" autoComplete="off" />
            </label>
          </>
        ) : (
          <label>
            Command
            <input name="command" placeholder="npx -y some-mcp-server" required />
          </label>
        )}
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Add
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

/** Splits a command line into words; quotes keep words together. */
function splitCommand(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

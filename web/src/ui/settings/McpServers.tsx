// MCP servers, from the configuration file or added here.

import { useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpServerResponse, McpServerTestResponse, McpSignInResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { Button } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList, type StatusKind } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { McpServerDialog } from "./McpServerDialog.tsx";
import { type SettingsProps, useItems } from "./use-settings.ts";

export function McpServers({ settings }: SettingsProps) {
  const passwordSet = settings?.password_set ?? false;
  const [servers, reload] = useItems<McpServerResponse>("/api/mcp");
  const [adding, setAdding] = useState(false);
  useEffect(() => {
    const refresh = () => void reload(); // after signing in, in another tab
    addEventListener("focus", refresh);
    return () => removeEventListener("focus", refresh);
  }, [reload]);
  return (
    <>
      <p className={text.quiet}>
        Tools from MCP servers are named <code>server__tool</code> and need your approval unless a rule allows them.
        Local commands run with your user account, without a sandbox.
      </p>
      <ItemList label="MCP servers">
        {servers.map((server) => (
          <ServerItem key={server.name} server={server} passwordSet={passwordSet} reload={reload} />
        ))}
      </ItemList>
      <Button onClick={() => setAdding(true)}>Add server</Button>
      {adding && <McpServerDialog passwordSet={passwordSet} onClose={() => setAdding(false)} onSaved={reload} />}
    </>
  );
}

function statusOf({ connected, failure }: McpServerResponse): { text: string; kind: StatusKind } {
  if (connected) return { text: "Connected", kind: "good" };
  return failure ? { text: "Failed", kind: "bad" } : { text: "Idle", kind: "neutral" };
}

interface ServerItemProps {
  server: McpServerResponse;
  passwordSet: boolean;
  reload: () => Promise<void>;
}

function ServerItem({ server, passwordSet, reload }: ServerItemProps) {
  const { api } = useApp();
  const [result, setResult] = useState<{ text: string; ok: boolean } | null>(null);
  const [editing, setEditing] = useState(false);
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
  const signIn = async () => {
    // Opened before the address is known: browsers block windows that no click opens.
    const page = window.open("about:blank", "_blank");
    try {
      const { authorization_url } = await api.post<McpSignInResponse>(`/api/mcp/${server.name}/sign-in`);
      if (page) page.location.href = authorization_url;
      else location.href = authorization_url;
    } catch (error) {
      page?.close();
      setResult({ text: errorMessage(error), ok: false });
    }
  };
  const signOut = async () => {
    await api.call("DELETE", `/api/mcp/${server.name}/sign-in`).catch(() => undefined);
    await reload();
  };
  const failure = server.failure && [server.failure, server.stderr].filter(Boolean).join(". ");
  return (
    <Item
      status={statusOf(server)}
      title={server.name}
      facts={[
        server.target,
        server.cwd && `in ${server.cwd}`,
        server.env?.length ? `Variables: ${server.env.join(", ")}` : null,
        server.headers?.length ? `Headers: ${server.headers.join(", ")}` : null,
        server.has_token && "Access token stored",
        server.signed_in && "Signed in",
        !server.editable && "Set in holdfast.toml",
      ]}
      details={
        (result || failure) && (
          <p className={result?.ok ? text.quiet : text.error} role="status">
            {result?.text ?? failure}
          </p>
        )
      }
    >
      {server.can_sign_in && !server.signed_in && !server.connected && (
        <ItemAction name="Connect" of={server.name} onClick={() => void signIn()} />
      )}
      {server.signed_in && <ItemAction name="Sign out" of={server.name} onClick={() => void signOut()} />}
      <ItemAction name="Test" of={server.name} onClick={() => void test()} />
      {server.editable && <ItemAction name="Edit" of={server.name} onClick={() => setEditing(true)} />}
      {server.editable && <ItemAction name="Remove" of={server.name} onClick={() => void remove()} />}
      {editing && (
        <McpServerDialog server={server} passwordSet={passwordSet} onClose={() => setEditing(false)} onSaved={reload} />
      )}
    </Item>
  );
}

// MCP servers, from the configuration file or added here.

import { useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpServerResponse, McpServerTestResponse, McpSignInResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { Button } from "../widgets/buttons.tsx";
import { InlineCode } from "../widgets/InlineCode.tsx";
import { Item, ItemAction, ItemList, type StatusKind } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { McpServerDialog } from "./McpServerDialog.tsx";
import { type SettingsProps, useItems } from "./use-settings.ts";

export function McpServers({ settings }: SettingsProps) {
  const passwordSet = settings?.password_set ?? false;
  const [servers, reload] = useItems<McpServerResponse>("/api/mcp");
  const [adding, setAdding] = useState(false);
  const [added, setAdded] = useState<string | null>(null);
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
          <ServerItem
            key={server.name}
            server={server}
            passwordSet={passwordSet}
            isNew={server.name === added}
            reload={reload}
          />
        ))}
      </ItemList>
      <Button onClick={() => setAdding(true)}>Add server</Button>
      {adding && (
        <McpServerDialog
          passwordSet={passwordSet}
          onClose={() => setAdding(false)}
          onSaved={async (name) => {
            setAdded(name);
            await reload();
          }}
        />
      )}
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
  /** Whether it was just added: it is tested at once. */
  isNew: boolean;
  reload: () => Promise<void>;
}

function ServerItem({ server, passwordSet, isNew, reload }: ServerItemProps) {
  const { api } = useApp();
  const [result, setResult] = useState<{ text: string; ok: boolean } | null>(null);
  const [editing, setEditing] = useState(false);
  const test = async () => {
    setResult({ text: "Connecting…", ok: true });
    const outcome = await tested();
    await reload(); // the status changes together with the text
    setResult(outcome);
  };
  const tested = async () => {
    try {
      const { ok, reason, tools } = await api.post<McpServerTestResponse>(`/api/mcp/${server.name}/test`);
      const found = `${tools.length} ${tools.length === 1 ? "tool" : "tools"}: ${tools.join(", ")}`;
      return { text: ok ? found : (reason ?? "Connection failed."), ok };
    } catch (error) {
      return { text: errorMessage(error), ok: false };
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once
  useEffect(() => {
    if (isNew) void test();
  }, [isNew]);
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
        (result || server.failure) && (
          <>
            <p className={result?.ok ? text.quiet : text.error} role="status">
              <InlineCode text={result?.text ?? server.failure ?? ""} />
            </p>
            {!result?.ok && server.failure && server.stderr && (
              <details className={text.block}>
                <summary className={text.quiet}>Error output</summary>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
                <pre tabIndex={0}>{server.stderr}</pre>
              </details>
            )}
          </>
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

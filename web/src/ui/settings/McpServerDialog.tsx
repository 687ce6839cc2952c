// Adds or changes an MCP server. Stored secrets are named and never shown; an empty field keeps them.

import { type FormEvent, useId, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpServerRequest, McpServerResponse } from "../../core/api-types.ts";
import { joinCommand, splitCommand } from "../../core/command-line.ts";
import { useApp } from "../context.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import styles from "./McpServerDialog.module.css";
import { SecretFields, secretValues, storedSecrets } from "./SecretFields.tsx";

const KINDS = [
  ["http", "Remote (HTTP)"],
  ["stdio", "Local command"],
] as const;

interface Props {
  /** Without a password, no local command can be added here. */
  passwordSet: boolean;
  /** The server to change; without it one is added. */
  server?: McpServerResponse;
  onClose: () => void;
  onSaved: (name: string) => Promise<void>;
}

export function McpServerDialog({ server, passwordSet, onClose, onSaved }: Props) {
  const hint = useId();
  const { api } = useApp();
  const [kind, setKind] = useState(server?.kind ?? "http");
  const [secrets, setSecrets] = useState(() => storedSecrets(secretNames(server)));
  const [problem, setProblem] = useState<string | null>(null);
  const [edited, setEdited] = useState(false);
  const changeSecrets = (changed: typeof secrets) => {
    setSecrets(changed);
    setEdited(true);
  };
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const field = (name: string) => String(fields.get(name) ?? "").trim();
    const values = secretValues(secrets);
    const [command = "", ...args] = splitCommand(field("command"));
    const body: McpServerRequest =
      kind === "stdio"
        ? { command, args, env: values, ...(field("cwd") ? { cwd: field("cwd") } : {}) }
        : { url: field("url"), headers: values, ...(field("token") ? { token: field("token") } : {}) };
    try {
      const name = server?.name ?? field("name");
      await api.call("PUT", `/api/mcp/${encodeURIComponent(name)}`, body);
      await onSaved(name);
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const title = server ? `Edit ${server.name}` : "Add MCP server";
  return (
    <Dialog name={title} onClose={onClose} className={styles.dialog} edited={edited}>
      <form className={dialogBodyClass} onInput={() => setEdited(true)} onSubmit={(event) => void save(event)}>
        <h2>{title}</h2>
        {!server && (
          <>
            <Segments
              label="Type"
              options={KINDS}
              value={kind}
              onChange={(chosen) => {
                setKind(chosen);
                setSecrets([]);
              }}
            />
            <label>
              Name
              <input
                name="name"
                required
                maxLength={32}
                pattern="[a-z0-9][a-z0-9_\-]{0,31}"
                title="Lowercase letters, digits, - and _"
                aria-describedby={hint}
              />
              <span id={hint} className={forms.hint}>
                Lowercase letters, digits, - and _, for example my-tides
              </span>
            </label>
          </>
        )}
        {kind === "stdio" && !passwordSet && !server && (
          <p role="note">
            Local commands need a server password.{" "}
            <Link href="/settings#access" onClick={onClose}>
              Set a password
            </Link>{" "}
            first, or add the command to holdfast.toml.
          </p>
        )}
        {kind === "http" ? <RemoteFields server={server} /> : <CommandFields server={server} />}
        <SecretFields
          title={kind === "http" ? "Headers" : "Environment variables"}
          add={kind === "http" ? "Add header" : "Add variable"}
          secrets={secrets}
          onChange={changeSecrets}
        />
        {server && (
          <p className={text.quiet}>
            {kind === "http"
              ? "A new URL removes the stored token and headers."
              : "A new command removes the stored variables."}
          </p>
        )}
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={kind === "stdio" && !passwordSet && !server}>
            {server ? "Save" : "Add"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

function RemoteFields({ server }: { server: McpServerResponse | undefined }) {
  return (
    <>
      <label>
        URL
        <input name="url" type="url" placeholder="https://…/mcp" required defaultValue={server?.target} />
      </label>
      <label>
        Access token (optional)
        <input
          name="token"
          type="password"
          autoComplete="off"
          placeholder={server?.has_token ? "Stored; empty keeps it" : ""}
        />
      </label>
    </>
  );
}

function CommandFields({ server }: { server: McpServerResponse | undefined }) {
  const line = server?.command == null ? "" : joinCommand([server.command, ...(server.args ?? [])]);
  return (
    <>
      <label>
        Command
        <input name="command" placeholder="npx -y some-mcp-server" required defaultValue={line} />
      </label>
      <label>
        Working directory (optional)
        <input name="cwd" placeholder="/home/me/project" defaultValue={server?.cwd ?? ""} />
      </label>
    </>
  );
}

function secretNames(server: McpServerResponse | undefined): readonly string[] {
  return server ? ((server.kind === "http" ? server.headers : server.env) ?? []) : [];
}

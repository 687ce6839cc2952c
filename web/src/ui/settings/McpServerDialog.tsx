// Adds or changes an MCP server. Stored secrets are named and never shown; an empty field keeps them.

import { type FormEvent, useId, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpServerRequest, McpServerResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons, IconButton } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import styles from "./McpServerDialog.module.css";

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
  onSaved: () => Promise<void>;
}

export function McpServerDialog({ server, passwordSet, onClose, onSaved }: Props) {
  const hint = useId();
  const { api } = useApp();
  const [kind, setKind] = useState(server?.kind ?? "http");
  const [secrets, setSecrets] = useState(() => storedSecrets(server));
  const [problem, setProblem] = useState<string | null>(null);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const field = (name: string) => String(fields.get(name) ?? "").trim();
    const values = Object.fromEntries(
      secrets
        .filter(({ name }) => name.trim())
        .map(({ name, value, stored }) => [name.trim(), stored && !value ? null : value]),
    );
    const [command = "", ...args] = splitCommand(field("command"));
    const body: McpServerRequest =
      kind === "stdio"
        ? { command, args, env: values, ...(field("cwd") ? { cwd: field("cwd") } : {}) }
        : { url: field("url"), headers: values, ...(field("token") ? { token: field("token") } : {}) };
    try {
      await api.call("PUT", `/api/mcp/${encodeURIComponent(server?.name ?? field("name"))}`, body);
      await onSaved();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const title = server ? `Edit ${server.name}` : "Add MCP server";
  return (
    <Dialog name={title} onClose={onClose} className={styles.dialog}>
      <form className={dialogBodyClass} onSubmit={(event) => void save(event)}>
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
          onChange={setSecrets}
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

interface Secret {
  readonly id: number;
  readonly name: string;
  readonly value: string;
  /** Whether the server has a value for it. */
  readonly stored: boolean;
}

function storedSecrets(server: McpServerResponse | undefined): readonly Secret[] {
  const names = server ? ((server.kind === "http" ? server.headers : server.env) ?? []) : [];
  return names.map((name, id) => ({ id, name, value: "", stored: true }));
}

interface SecretFieldsProps {
  title: string;
  add: string;
  secrets: readonly Secret[];
  onChange: (secrets: readonly Secret[]) => void;
}

function SecretFields({ title, add, secrets, onChange }: SecretFieldsProps) {
  const change = (id: number, fields: Partial<Secret>) =>
    onChange(secrets.map((secret) => (secret.id === id ? { ...secret, ...fields } : secret)));
  const next = Math.max(-1, ...secrets.map(({ id }) => id)) + 1;
  return (
    <fieldset className={styles.secrets}>
      <legend>{title} (optional)</legend>
      {secrets.map(({ id, name, value, stored }) => (
        <div key={id} className={styles.secret}>
          <input
            className={forms.field}
            aria-label="Name"
            placeholder="Name"
            value={name}
            readOnly={stored}
            required
            autoComplete="off"
            onChange={(event) => change(id, { name: event.target.value })}
          />
          <input
            className={forms.field}
            aria-label={`Value of ${name}`}
            type="password"
            placeholder={stored ? "Stored; empty keeps it" : "Value"}
            value={value}
            required={!stored}
            autoComplete="off"
            onChange={(event) => change(id, { value: event.target.value })}
          />
          <IconButton
            name={`Remove ${name || "row"}`}
            icon="close"
            onClick={() => onChange(secrets.filter((secret) => secret.id !== id))}
          />
        </div>
      ))}
      <Button small onClick={() => onChange([...secrets, { id: next, name: "", value: "", stored: false }])}>
        {add}
      </Button>
    </fieldset>
  );
}

/** Splits a command line into words; quotes keep words together. */
function splitCommand(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

/** The inverse of `splitCommand`. */
function joinCommand(words: readonly string[]): string {
  return words
    .map((word) => (/^[^\s"']+$/.test(word) ? word : word.includes('"') ? `'${word}'` : `"${word}"`))
    .join(" ");
}

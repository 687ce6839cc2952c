// Adds or changes an agent program.

import { type FormEvent, useId, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { AgentRequest } from "../../core/api-types.ts";
import { joinCommand, splitCommand } from "../../core/command-line.ts";
import type { Agent } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import text from "../widgets/text.module.css";
import styles from "./McpServerDialog.module.css";
import { SecretFields, secretValues, storedSecrets } from "./SecretFields.tsx";

interface Props {
  /** The agent to change; without it one is added. */
  agent?: Agent;
  onClose: () => void;
}

export function AgentDialog({ agent, onClose }: Props) {
  const hint = useId();
  const app = useApp();
  const [secrets, setSecrets] = useState(() => storedSecrets(agent?.env ?? []));
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const [edited, setEdited] = useState(false);
  const changeSecrets = (changed: typeof secrets) => {
    setSecrets(changed);
    setEdited(true);
  };
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const field = (name: string) => String(fields.get(name) ?? "").trim();
    const [command = "", ...args] = splitCommand(field("command"));
    const cwd = field("cwd");
    const body: AgentRequest = { command, args, env: secretValues(secrets), ...(cwd ? { cwd } : {}) };
    setSaving(true);
    try {
      const name = agent?.name ?? field("name");
      await app.api.call("PUT", `/api/agents/${encodeURIComponent(name)}`, body);
      await app.loadCatalog();
      app.toasts.show(agent ? `Saved ${name}` : `Added ${name}`);
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
      setSaving(false);
    }
  };
  const title = agent ? `Edit ${agent.name}` : "Add agent";
  return (
    <Dialog name={title} onClose={onClose} className={styles.dialog} edited={edited}>
      <form className={dialogBodyClass} onInput={() => setEdited(true)} onSubmit={(event) => void save(event)}>
        <h2>{title}</h2>
        {!agent && (
          <label>
            Name
            <input
              name="name"
              required
              pattern="[a-z0-9][a-z0-9_\-]{0,40}"
              title="Lowercase letters, digits, - and _"
              aria-describedby={hint}
              autoCapitalize="none"
              autoComplete="off"
            />
            <span id={hint} className={forms.hint}>
              Lowercase letters, digits, - and _, for example my-agent
            </span>
          </label>
        )}
        <label>
          Command
          <input
            name="command"
            required
            placeholder="npx -y @google/gemini-cli --acp"
            defaultValue={joinCommand(agent?.command ?? [])}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
          />
        </label>
        <label>
          Working directory (optional)
          <input
            name="cwd"
            placeholder="Default: a separate folder for each chat"
            defaultValue={agent?.cwd ?? ""}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
          />
        </label>
        <SecretFields title="Environment variables" add="Add variable" secrets={secrets} onChange={changeSecrets} />
        {agent?.editable && <p className={text.quiet}>A new command removes the stored variables.</p>}
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={saving}>
            {agent ? "Save" : "Add"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

// Adds or changes a saved prompt.

import { type FormEvent, useId, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { changePrompt, createPrompt, type PromptResponse } from "../../core/prompt-calls.ts";
import { useApp } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import styles from "./McpServerDialog.module.css";

interface Props {
  /** The prompt to change; null: one is added. */
  prompt: PromptResponse | null;
  onClose: () => void;
  onSaved: () => Promise<void>;
}

export function PromptDialog({ prompt, onClose, onSaved }: Props) {
  const { api } = useApp();
  const id = useId();
  const [problem, setProblem] = useState<string | null>(null);
  const [edited, setEdited] = useState(false);
  const [saving, setSaving] = useState(false);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = new FormData(event.currentTarget);
    const field = (name: string) => String(entered.get(name) ?? "").trim();
    const fields = { name: field("name"), description: field("description"), text: field("text") };
    setSaving(true);
    try {
      await (prompt ? changePrompt(api, prompt, fields) : createPrompt(api, fields));
      await onSaved();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
      setSaving(false);
    }
  };
  const title = prompt ? `Edit /${prompt.name}` : "Add prompt";
  return (
    <Dialog name={title} onClose={onClose} className={styles.dialog} edited={edited}>
      <form className={dialogBodyClass} onInput={() => setEdited(true)} onSubmit={(event) => void save(event)}>
        <h2>{title}</h2>
        <label>
          Name
          <input
            name="name"
            required
            maxLength={64}
            pattern="[a-z][a-z0-9_\-]{0,63}"
            title="Lowercase letters, digits, - and _"
            defaultValue={prompt?.name}
            aria-describedby={`${id}-name`}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
          />
          <span id={`${id}-name`} className={forms.hint}>
            Lowercase letters, digits, - and _, for example summarize
          </span>
        </label>
        <label>
          Description (optional)
          <input name="description" maxLength={200} defaultValue={prompt?.description} autoComplete="off" />
        </label>
        <label>
          Prompt
          <textarea
            className={forms.field}
            name="text"
            required
            rows={8}
            maxLength={20_000}
            defaultValue={prompt?.text}
            aria-describedby={`${id}-text`}
          />
          <span id={`${id}-text`} className={forms.hint}>
            Variables in double braces: {"{{topic}}"}, or with a default value: {"{{tone=friendly}}"}
          </span>
        </label>
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={saving}>
            {prompt ? "Save" : "Add"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

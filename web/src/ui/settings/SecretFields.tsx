// Variables and headers whose values the server stores and never returns; an empty field keeps a stored value.

import { Button, IconButton } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import styles from "./SecretFields.module.css";

export interface Secret {
  readonly id: number;
  readonly name: string;
  readonly value: string;
  /** Whether the server has a value for it. */
  readonly stored: boolean;
}

export function storedSecrets(names: readonly string[]): readonly Secret[] {
  return names.map((name, id) => ({ id, name, value: "", stored: true }));
}

/** The values by name, as the server takes them: null keeps the stored one. */
export function secretValues(secrets: readonly Secret[]): { [name: string]: string | null } {
  return Object.fromEntries(
    secrets
      .filter(({ name }) => name.trim())
      .map(({ name, value, stored }) => [name.trim(), stored && !value ? null : value]),
  );
}

interface SecretFieldsProps {
  title: string;
  add: string;
  secrets: readonly Secret[];
  onChange: (secrets: readonly Secret[]) => void;
}

export function SecretFields({ title, add, secrets, onChange }: SecretFieldsProps) {
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

// Shows what the server of a running tool asks: a form with its fields, or whether it may use the model.

import { type FormEvent, useState } from "react";
import { type InputAnswer, type InputRequest, isJsonObject, type Json, type JsonObject } from "../../core/types.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Approval.module.css";
import { focusMessageBox } from "./focus.ts";

interface Props {
  request: InputRequest;
  /** Returns something falsy if the answer could not be sent. */
  onAnswer: (requestId: string, answer: InputAnswer) => Promise<unknown>;
}

export default function InputForm({ request, onAnswer }: Props) {
  const [sending, setSending] = useState(false);
  const { server, kind, message } = request;
  const fields = fieldsOf(request.schema ?? null);
  const answer = async (action: InputAnswer["action"], content: InputAnswer["content"] = {}) => {
    setSending(true);
    focusMessageBox(); // the form is about to go
    if (!(await onAnswer(request.request_id, { action, content }))) setSending(false);
  };
  const accept = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void answer("accept", readFields(fields, new FormData(event.currentTarget)));
  };
  return (
    <form className={classNames(styles.approval, text.block)} aria-label="Question" onSubmit={accept}>
      <p className={styles.question}>
        <Icon name="tool" />
        <span>
          <strong>{server}</strong> {kind === "form" ? "asks you" : "wants to use the model of this chat"}
        </span>
      </p>
      {kind === "form" ? (
        <p className={text.plain} dir="auto">
          {message}
        </p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <pre tabIndex={0}>{message}</pre>
      )}
      {fields.map((field) => (
        <FormField key={field.name} field={field} />
      ))}
      {kind === "form" && <p className={text.quiet}>Your answer goes to this server. Do not enter passwords.</p>}
      <div className={text.row}>
        <Button type="submit" variant="primary" disabled={sending}>
          {kind === "form" ? "Submit" : "Allow"}
        </Button>
        <Button disabled={sending} onClick={() => void answer("decline")}>
          Decline
        </Button>
        {kind === "form" && (
          <Button disabled={sending} onClick={() => void answer("cancel")}>
            Cancel
          </Button>
        )}
      </div>
    </form>
  );
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly schema: JsonObject;
  readonly required: boolean;
  /** Values with their labels; null if anything can be entered. */
  readonly choices: readonly (readonly [string, string])[] | null;
}

function fieldsOf(schema: Json): Field[] {
  if (!isJsonObject(schema) || !isJsonObject(schema.properties ?? null)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties as JsonObject).flatMap(([name, field]) => {
    if (!isJsonObject(field)) return [];
    const label = typeof field.title === "string" ? field.title : name;
    const options = field.type === "array" ? (field.items ?? null) : field;
    return [{ name, label, schema: field, required: required.includes(name), choices: choicesOf(options) }];
  });
}

function choicesOf(schema: Json): Field["choices"] {
  if (!isJsonObject(schema)) return null;
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  if (Array.isArray(schema.enum)) return schema.enum.map((value, n) => [String(value), String(names[n] ?? value)]);
  const options = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(options)) return null;
  return options.filter(isJsonObject).map((option) => [String(option.const), String(option.title ?? option.const)]);
}

const INPUT_TYPES: Readonly<Record<string, string>> = {
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};

function FormField({ field: { name, label, schema, required, choices } }: { field: Field }) {
  const value = schema.default;
  const help = typeof schema.description === "string" ? <span className={text.quiet}>{schema.description}</span> : null;
  if (schema.type === "boolean") {
    return (
      <label className={forms.checkbox}>
        <input type="checkbox" name={name} defaultChecked={value === true} />
        {label} {help}
      </label>
    );
  }
  if (schema.type === "array") {
    const chosen = Array.isArray(value) ? value : [];
    return (
      <fieldset className={styles.choices}>
        <legend>{label}</legend>
        {help}
        {(choices ?? []).map(([choice, shown]) => (
          <label key={choice} className={forms.checkbox}>
            <input type="checkbox" name={name} value={choice} defaultChecked={chosen.includes(choice)} />
            {shown}
          </label>
        ))}
      </fieldset>
    );
  }
  const caption = required ? label : `${label} (optional)`;
  if (!choices) {
    return (
      <label className={styles.field}>
        {caption}
        {help}
        <input className={forms.field} name={name} required={required} autoComplete="off" {...inputProps(schema)} />
      </label>
    );
  }
  return (
    <label className={styles.field}>
      {caption}
      {help}
      <select className={forms.field} name={name} required={required} defaultValue={String(value ?? "")}>
        <option value="">Choose…</option>
        {choices.map(([choice, shown]) => (
          <option key={choice} value={choice}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}

function inputProps(schema: JsonObject) {
  const number = schema.type === "number" || schema.type === "integer";
  const limit = (key: string) => (typeof schema[key] === "number" ? schema[key] : undefined);
  return {
    type: number ? "number" : (INPUT_TYPES[String(schema.format)] ?? "text"),
    step: schema.type === "number" ? "any" : undefined,
    min: limit("minimum"),
    max: limit("maximum"),
    minLength: limit("minLength"),
    maxLength: limit("maxLength"),
    defaultValue: schema.default == null ? "" : String(schema.default),
  };
}

/** The entered values; fields that were left empty are left out. */
function readFields(fields: readonly Field[], entered: FormData): NonNullable<InputAnswer["content"]> {
  const content: { [name: string]: string | boolean | number | string[] } = {};
  for (const { name, schema } of fields) {
    const value = String(entered.get(name) ?? "");
    if (schema.type === "boolean") content[name] = entered.get(name) !== null;
    else if (schema.type === "array") content[name] = entered.getAll(name).map(String);
    else if (value === "") continue;
    else if (schema.type === "number" || schema.type === "integer") content[name] = Number(value);
    else content[name] = schema.format === "date-time" ? new Date(value).toISOString() : value;
  }
  return content;
}

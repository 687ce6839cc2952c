// Prompts as commands of the message box: `/name` inserts a saved prompt, `/server:name` one of an MCP server. Loaded
// with the first slash.

import { type FormEvent, useEffect, useEffectEvent, useId, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpPromptListResponse, McpPromptTextResponse } from "../../core/api-types.ts";
import { fillPrompt, listPrompts } from "../../core/prompt-calls.ts";
import { useApp } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import text from "../widgets/text.module.css";
import { focusMessageBox } from "./focus.ts";
import type { SlashCommand } from "./SlashCommands.tsx";

interface PromptField {
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
  readonly initial?: string;
}

interface Prompt {
  readonly name: string;
  readonly description: string;
  readonly fields: readonly PromptField[];
  /** Whether values may have several lines. */
  readonly multiline?: boolean;
  readonly fill: (values: { [field: string]: string }) => Promise<string>;
}

interface Props {
  /** Whether a command is being typed. */
  typed: boolean;
  insert: (text: string) => void;
  onCommands: (commands: readonly SlashCommand[]) => void;
}

export default function PromptCommands({ typed, insert, onCommands }: Props) {
  const { api } = useApp();
  const [saved, setSaved] = useState<readonly Prompt[]>([]);
  const [served, setServed] = useState<readonly Prompt[] | null>(null);
  const [chosen, setChosen] = useState<Prompt | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    if (!typed) return;
    listPrompts(api).then(
      (prompts) =>
        setSaved(
          prompts.map(({ id, name, description, variables, text }) => ({
            name,
            description,
            fields: variables.map((each) => ({
              name: each.name,
              required: each.default === null,
              initial: each.default ?? "",
            })),
            multiline: true,
            fill: (values) => (variables.length ? fillPrompt(api, id, values) : Promise.resolve(text)),
          })),
        ),
      () => undefined, // tried again with the next slash
    );
  }, [api, typed]);
  const load = typed && served === null;
  useEffect(() => {
    if (!load) return;
    setServed([]); // loaded once: that may start programs
    api.get<McpPromptListResponse>("/api/mcp/prompts").then(
      ({ items }) =>
        setServed(
          items.map(({ server, name, description, arguments: fields }) => ({
            name: `${server}:${name}`,
            description,
            fields,
            fill: async (values) => {
              const body = { prompt: name, arguments: values };
              return (await api.post<McpPromptTextResponse>(`/api/mcp/${server}/prompts`, body)).text;
            },
          })),
        ),
      () => setServed(null),
    );
  }, [api, load]);
  const fill = async (prompt: Prompt, values: { [field: string]: string }) => {
    setChosen(null);
    setProblem(null);
    try {
      insert(await prompt.fill(values));
      focusMessageBox();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const report = useEffectEvent(onCommands);
  const run = useEffectEvent((prompt: Prompt) => (prompt.fields.length ? setChosen(prompt) : void fill(prompt, {})));
  useEffect(() => {
    const all = [...saved, ...(served ?? [])];
    report(all.map((prompt) => ({ name: prompt.name, description: prompt.description, run: () => run(prompt) })));
  }, [saved, served]);
  return (
    <>
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      {chosen && (
        <FieldsDialog prompt={chosen} onClose={() => setChosen(null)} onFill={(values) => void fill(chosen, values)} />
      )}
    </>
  );
}

interface FieldsDialogProps {
  prompt: Prompt;
  onClose: () => void;
  onFill: (values: { [field: string]: string }) => void;
}

function FieldsDialog({ prompt, onClose, onFill }: FieldsDialogProps) {
  const id = useId();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = new FormData(event.currentTarget);
    const values = prompt.fields.map(({ name }) => [name, String(entered.get(name) ?? "")] as const);
    onFill(Object.fromEntries(values.filter(([, value]) => value !== "")));
  };
  const title = `/${prompt.name}`;
  return (
    <Dialog name={title} onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={submit}>
        <h2>{title}</h2>
        {prompt.description && <p>{prompt.description}</p>}
        {prompt.fields.map(({ name, description, required, initial }) => (
          <label key={name} htmlFor={`${id}-${name}`}>
            {required ? name : `${name} (optional)`}
            {description && <span className={text.quiet}>{description}</span>}
            {prompt.multiline ? (
              <textarea
                className={forms.field}
                id={`${id}-${name}`}
                name={name}
                required={required}
                defaultValue={initial}
                rows={2}
                maxLength={20_000}
              />
            ) : (
              <input id={`${id}-${name}`} name={name} required={required} autoComplete="off" />
            )}
          </label>
        ))}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Insert
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

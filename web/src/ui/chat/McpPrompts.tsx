// Prompts of MCP servers as commands of the message box: `/server:prompt` inserts the prompt's text.

import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { McpPromptListResponse, McpPromptResponse, McpPromptTextResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import text from "../widgets/text.module.css";
import type { SlashCommand } from "./SlashCommands.tsx";

interface McpPrompts {
  commands: readonly SlashCommand[];
  /** Asks for the arguments of the chosen prompt. */
  dialog: ReactNode;
  problem: string | null;
  dismiss: () => void;
}

/** Loads the prompts when they are first `wanted`: that may start programs. */
export function useMcpPrompts(wanted: boolean, insert: (text: string) => void): McpPrompts {
  const { api } = useApp();
  const [prompts, setPrompts] = useState<readonly McpPromptResponse[] | null>(null);
  const [chosen, setChosen] = useState<McpPromptResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = wanted && prompts === null;
  useEffect(() => {
    if (!load) return;
    setPrompts([]);
    api.get<McpPromptListResponse>("/api/mcp/prompts").then(
      ({ items }) => setPrompts(items),
      () => setPrompts(null), // tried again with the next slash
    );
  }, [api, load]);
  const fill = async ({ server, name }: McpPromptResponse, values: { [argument: string]: string }) => {
    setChosen(null);
    try {
      const body = { prompt: name, arguments: values };
      insert((await api.post<McpPromptTextResponse>(`/api/mcp/${server}/prompts`, body)).text);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const commands = (prompts ?? []).map((prompt) => ({
    name: `${prompt.server}:${prompt.name}`,
    description: prompt.description,
    run: () => (prompt.arguments.length ? setChosen(prompt) : void fill(prompt, {})),
  }));
  const dialog = chosen && (
    <ArgumentsDialog prompt={chosen} onClose={() => setChosen(null)} onFill={(values) => void fill(chosen, values)} />
  );
  return { commands, dialog, problem, dismiss: () => setProblem(null) };
}

interface PromptDialogProps {
  prompt: McpPromptResponse;
  onClose: () => void;
  onFill: (values: { [argument: string]: string }) => void;
}

function ArgumentsDialog({ prompt, onClose, onFill }: PromptDialogProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = new FormData(event.currentTarget);
    const values = prompt.arguments.map(({ name }) => [name, String(entered.get(name) ?? "")] as const);
    onFill(Object.fromEntries(values.filter(([, value]) => value !== "")));
  };
  const title = `/${prompt.server}:${prompt.name}`;
  return (
    <Dialog name={title} onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={submit}>
        <h2>{title}</h2>
        {prompt.description && <p>{prompt.description}</p>}
        {prompt.arguments.map(({ name, description, required }) => (
          <label key={name}>
            {required ? name : `${name} (optional)`}
            {description && <span className={text.quiet}>{description}</span>}
            <input name={name} required={required} autoComplete="off" />
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

// The prompt library: texts with variables, which a slash in the message box inserts.

import { useCallback, useEffect, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { ImportedPromptsResponse } from "../../core/api-types.ts";
import { deletePrompt, importPrompts, listPrompts, type PromptResponse } from "../../core/prompt-calls.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { withRoot } from "../root-path.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { PromptDialog } from "./PromptDialog.tsx";

export function Prompts() {
  const { api, env, toasts } = useApp();
  const [prompts, setPrompts] = useState<readonly PromptResponse[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [edited, setEdited] = useState<PromptResponse | "new" | null>(null);
  const fileInput = useRef<HTMLInputElement>(null);
  const load = useCallback(async () => {
    try {
      setPrompts(await listPrompts(api));
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, [api]);
  useEffect(() => {
    void load();
    return env.onVisibilityChange(() => env.isHidden() || void load());
  }, [env, load]);
  const change = async (work: () => Promise<unknown>) => {
    try {
      await work();
      await load();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const remove = async (prompt: PromptResponse) => {
    const detail = "Messages that were written with it stay as they are.";
    if (!(await askConfirmation(`Delete /${prompt.name}?`, detail, "Delete")).confirmed) return;
    await change(() => deletePrompt(api, prompt.id));
  };
  const importFile = (file: File) =>
    change(async () => {
      let result = await importPrompts(api, file, false);
      const { skipped } = result;
      if (skipped.length) {
        const names = skipped.map((name) => `/${name}`).join(", ");
        const question = skipped.length === 1 ? "Replace a prompt?" : `Replace ${skipped.length} prompts?`;
        const { confirmed } = await askConfirmation(question, `Different ones are stored here: ${names}`, "Replace");
        if (confirmed) result = { ...(await importPrompts(api, file, true)), added: result.added, skipped: [] };
      }
      toasts.show(describe(result));
    });
  return (
    <>
      <p className={text.quiet}>
        Type <code>/</code> and the name of a prompt in the message box to insert it. Variables are asked for first.
      </p>
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      {prompts && !prompts.length && <p className={text.quiet}>No prompts yet</p>}
      <ItemList label="Prompts">
        {prompts?.map((prompt) => (
          <Item
            key={prompt.id}
            title={`/${prompt.name}`}
            facts={[prompt.description || firstLine(prompt.text), countVariables(prompt)]}
          >
            <ItemAction name="Edit" of={`/${prompt.name}`} onClick={() => setEdited(prompt)} />
            <ItemAction name="Delete" of={`/${prompt.name}`} onClick={() => void remove(prompt)} />
          </Item>
        ))}
      </ItemList>
      <div className={text.row}>
        <Button onClick={() => setEdited("new")}>Add prompt</Button>
        <Button onClick={() => fileInput.current?.click()}>Import prompts</Button>
        {prompts && prompts.length > 0 && (
          <a className={buttonClass()} href={withRoot("/api/prompts/export")} download="prompts.json">
            Export prompts
          </a>
        )}
        <input
          ref={fileInput}
          type="file"
          accept=".json,application/json"
          hidden
          onChange={(event) => {
            const file = event.target.files?.[0];
            event.target.value = "";
            if (file) void importFile(file);
          }}
        />
      </div>
      {edited !== null && (
        <PromptDialog prompt={edited === "new" ? null : edited} onClose={() => setEdited(null)} onSaved={load} />
      )}
    </>
  );
}

const MAX_SHOWN = 120;

function firstLine(content: string): string {
  const line = content.trim().split("\n", 1)[0] ?? "";
  return line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line;
}

function countVariables({ variables }: PromptResponse): string | null {
  if (!variables.length) return null;
  return variables.length === 1 ? "1 variable" : `${variables.length} variables`;
}

function describe({ added, replaced, skipped }: ImportedPromptsResponse): string {
  const changes = [
    added.length && `${added.length} added`,
    replaced.length && `${replaced.length} replaced`,
    skipped.length && `${skipped.length} kept as they were`,
  ].filter(Boolean);
  return changes.length ? `Prompts imported: ${changes.join(", ")}` : "All of these prompts are already here";
}

// The models and agents that can be compared. How many at once: CompareForm.tsx.

import { useMemo } from "react";
import { agentTitle } from "../../core/agent-descriptions.ts";
import type { Choice } from "../../core/comparison.ts";
import { offeredModels } from "../../core/models.ts";
import { useApp, useStore } from "../context.ts";
import { useSavedChoice } from "./use-saved-choice.ts";

export interface CompareOption {
  readonly id: string;
  readonly name: string;
  readonly choice: Choice;
}

export function useCompareOptions(): readonly CompareOption[] {
  const { models, agents, defaultModel } = useStore(useApp().catalog);
  const name = models.find(({ id }) => id === defaultModel)?.name;
  return useMemo(
    () => [
      { id: "", name: name ? `Default (${name})` : "Default model", choice: {} },
      ...offeredModels(models)
        .filter((model) => model.available)
        .map((model) => ({ id: `model:${model.id}`, name: model.name, choice: { model: model.id } })),
      ...(agents.length > 1 ? agents.filter((agent) => agent.available) : []).map((agent) => ({
        id: `agent:${agent.name}`,
        name: `${agentTitle(agent.name)} (agent)`,
        choice: { agent: agent.name },
      })),
    ],
    [models, agents, name],
  );
}

/** The selected option ids, one per pane: at first the default model and another one. */
export function useSelectedOptions(options: readonly CompareOption[]) {
  const { defaultModel } = useStore(useApp().catalog);
  const [picked, setPicked] = useSavedChoice<readonly string[] | null>("models", null);
  const other = options.find(({ choice }) => choice.model && choice.model !== defaultModel)?.id ?? "";
  return [picked ?? ["", other], setPicked] as const;
}

export function optionName(choice: Choice, options: readonly CompareOption[]): string {
  const found = options.find(({ choice: { model, agent } }) => model === choice.model && agent === choice.agent);
  return found?.name ?? choice.model ?? choice.agent ?? "Default model"; // it may no longer be available
}

// The models and agents that a chat can use, to choose one from.

import { useLayoutEffect } from "react";
import { AGENT_DESCRIPTIONS, agentTitle } from "../../core/agent-descriptions.ts";
import { offeredModels, providerNote } from "../../core/models.ts";
import type { Agent, Model } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { Picker, type PickerItem } from "../widgets/Picker.tsx";
import type { ModelChange } from "./ModelPicker.tsx";

const BUILT_IN = "chat";
interface ModelChoice extends PickerItem {
  readonly change?: ModelChange;
  /** Instead of a change of the chat. */
  readonly run?: () => void;
}
const LOCAL = "local";

/** Why the models of a provider are unavailable, once for all of them. The local model has a remedy of its own. */
function retryChoices(models: readonly Model[], run: () => void): ModelChoice[] {
  const reasons = new Map(
    models
      .filter(({ available, provider }) => !available && provider !== LOCAL)
      .map(({ provider, reason }) => [provider, reason ?? "Unavailable"]),
  );
  return [...reasons].map(([provider, detail]) => ({
    id: `retry:${provider}`,
    name: `Retry ${provider}`,
    detail,
    group: "Models",
    run,
  }));
}

/** The agents, if there are several: those that can be used first. A program that is not installed is left out, unless
 * somebody added or chose it. */
function offered(agents: readonly Agent[], selected: string | null): readonly Agent[] {
  if (agents.length <= 1) return [];
  const known = agents.filter(({ name, available, editable }) => available || editable || name === selected);
  return known.toSorted((a, b) => Number(b.available) - Number(a.available));
}

interface ModelChoicesProps {
  agent: string | null;
  /** The model that is used, also if it is the default. */
  model: string | null;
  /** Whether the agent uses the models listed here. */
  usesModels: boolean;
  onChoose: (change: ModelChange) => void;
  onClose: () => void;
  onResize: () => void;
}

export default function ModelChoices({ agent, model, usesModels, onChoose, onClose, onResize }: ModelChoicesProps) {
  const app = useApp();
  const { models, agents } = useStore(app.catalog);
  useLayoutEffect(onResize, [onResize]);
  const choices: ModelChoice[] = [
    ...offeredModels(models, model).map((item) => ({
      id: `model:${item.id}`,
      name: item.name,
      note: providerNote(item),
      ...(!item.available && item.provider === LOCAL ? { detail: item.reason ?? "Unavailable" } : {}),
      group: "Models",
      disabled: !item.available,
      selected: usesModels && item.id === model,
      change: usesModels ? { model: item.id } : { model: item.id, agent: BUILT_IN },
    })),
    ...retryChoices(models, () => void app.loadCatalog(true)),
    ...offered(agents, agent).map(({ name, reason, is_program }) => ({
      id: `agent:${name}`,
      name: agentTitle(name),
      note: is_program ? undefined : "Built-in",
      group: "Agents",
      detail: reason ?? AGENT_DESCRIPTIONS[name],
      disabled: reason !== null,
      selected: name === agent && name !== BUILT_IN, // the model's mark is enough for the usual agent
      change: { agent: name },
    })),
    ...(agents.length > 1
      ? [{ id: "manage", name: "Manage agents…", group: "Agents", run: () => navigate("/settings#tools") }]
      : []),
  ];
  const choose = ({ change, run }: ModelChoice) => {
    if (run) return run();
    if (change) onChoose(change);
    onClose();
  };
  return <Picker label="Search models and agents" choices={choices} onChoose={choose} autoFocus />;
}

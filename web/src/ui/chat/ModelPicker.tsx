import { useRef, useState } from "react";
import { AGENT_DESCRIPTIONS, agentTitle } from "../../core/agent-descriptions.ts";
import { modelName, offeredModels, providerNote } from "../../core/models.ts";
import type { Agent, Model } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { useProject } from "../projects/use-project.ts";
import { navigate } from "../router.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { Picker, type PickerItem } from "../widgets/Picker.tsx";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import { usePopoverPosition } from "../widgets/use-popover-position.ts";
import { focusMessageBox } from "./focus.ts";
import styles from "./ModelPicker.module.css";

interface Selection {
  readonly model: string | null;
  readonly agent: string | null;
  readonly project: string | null;
}
export type ModelChange = { readonly model?: string; readonly agent?: string };

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

/** Chooses the model, and the agent if there are several. */
export function ModelPicker({ selected, onChoose }: { selected: Selection; onChoose: (change: ModelChange) => void }) {
  const app = useApp();
  const { models, agents, defaultModel, loaded } = useStore(app.catalog);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePopoverPosition(button, box, open);
  const inherited = useProject(selected.project)?.model;
  const model = selected.model ?? inherited ?? defaultModel;
  // An agent that runs as a program has a model of its own; choosing one of ours goes back to the built-in agent. One
  // that is not listed was removed.
  const usesModels = !loaded || agents.some((item) => item.name === selected.agent && !item.is_program);
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
    ...offered(agents, selected.agent).map(({ name, reason, is_program }) => ({
      id: `agent:${name}`,
      name: agentTitle(name),
      note: is_program ? undefined : "Built-in",
      group: "Agents",
      detail: reason ?? AGENT_DESCRIPTIONS[name],
      disabled: reason !== null,
      selected: name === selected.agent && name !== BUILT_IN, // the model's mark is enough for the usual agent
      change: { agent: name },
    })),
    ...(agents.length > 1
      ? [{ id: "manage", name: "Manage agents…", group: "Agents", run: () => navigate("/settings#tools") }]
      : []),
  ];
  if (!choices.length) return null;
  const shownModel = model === null ? "Select a model" : modelName(models, model);
  const name = usesModels ? shownModel : selected.agent;
  const missing = usesModels && loaded && model !== null && !models.find(({ id }) => id === model)?.available;
  const choose = ({ change, run }: ModelChoice) => {
    if (run) return run();
    if (change) onChoose(change);
    box.current?.hidePopover();
    focusMessageBox();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={styles.button}
        aria-haspopup="dialog"
        aria-expanded={open}
        title="Model and agent"
        onClick={() => box.current?.togglePopover()}
      >
        <span className={text.visuallyHidden}>Model: </span>
        <span className={text.ellipsis}>{name}</span>
        {missing && <span className={styles.missing}>Unavailable</span>}
        <Icon name="down" />
      </button>
      <div
        ref={box}
        className={classNames(popover.floating, styles.popover)}
        popover="auto"
        role="dialog"
        aria-label="Model and agent"
        onToggle={(event) => {
          const isOpen = event.newState === "open";
          setOpen(isOpen);
          if (isOpen) app.checkCatalog();
        }}
      >
        {open && <Picker label="Search models and agents" choices={choices} onChoose={choose} autoFocus />}
      </div>
    </>
  );
}

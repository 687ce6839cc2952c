import { useRef, useState } from "react";
import type { Agent } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { type Choice, Picker } from "../widgets/Picker.tsx";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import { usePopoverPosition } from "../widgets/use-popover-position.ts";
import { focusMessageBox } from "./focus.ts";
import styles from "./ModelPicker.module.css";

interface Selection {
  readonly model: string | null;
  readonly agent: string | null;
}
export type ModelChange = { readonly model?: string; readonly agent?: string };

const BUILT_IN = "chat";
interface ModelChoice extends Choice {
  readonly change: ModelChange;
}

/** The agents, if there are several: those that can be used first. */
function offered(agents: readonly Agent[]): readonly Agent[] {
  return agents.length > 1 ? agents.toSorted((a, b) => Number(b.available) - Number(a.available)) : [];
}

/** Chooses the model, and the agent if there are several. */
export function ModelPicker({ selected, onChoose }: { selected: Selection; onChoose: (change: ModelChange) => void }) {
  const { models, agents, defaultModel, loaded } = useStore(useApp().catalog);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePopoverPosition(button, box, open);
  const model = selected.model ?? defaultModel;
  // An agent that runs as a program has a model of its own; choosing one of ours goes back to the built-in agent. One
  // that is not listed was removed.
  const usesModels = !loaded || agents.some((item) => item.name === selected.agent && !item.is_program);
  const choices: ModelChoice[] = [
    ...models.map((item) => ({
      id: `model:${item.id}`,
      name: item.name,
      note: item.provider,
      ...(item.available ? {} : { detail: item.reason ?? "Unavailable" }),
      group: "Models",
      disabled: !item.available,
      selected: usesModels && item.id === model,
      change: usesModels ? { model: item.id } : { model: item.id, agent: BUILT_IN },
    })),
    ...offered(agents).map(({ name, reason, is_program }) => ({
      id: `agent:${name}`,
      name,
      note: is_program ? undefined : "Built-in",
      group: "Agents",
      ...(reason === null ? {} : { detail: reason, disabled: true }),
      selected: name === selected.agent,
      change: { agent: name },
    })),
  ];
  if (!choices.length) return null;
  const modelName = models.find((item) => item.id === model)?.name ?? model ?? "Select a model";
  const name = usesModels ? modelName : selected.agent;
  const choose = ({ change }: ModelChoice) => {
    onChoose(change);
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
        <Icon name="down" />
      </button>
      <div
        ref={box}
        className={classNames(popover.floating, styles.popover)}
        popover="auto"
        role="dialog"
        aria-label="Model and agent"
        onToggle={(event) => setOpen(event.newState === "open")}
      >
        {open && <Picker label="Search models and agents" choices={choices} onChoose={choose} autoFocus />}
      </div>
    </>
  );
}

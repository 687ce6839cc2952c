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
type Change = { readonly model: string; readonly agent?: string } | { readonly agent: string };

const BUILT_IN = "chat";
interface ModelChoice extends Choice {
  readonly change: Change;
}

/** The agents that can be used, if there are several, and the selected one. */
function offered(agents: readonly Agent[], selected: string | null): readonly Agent[] {
  const found = agents.filter((item) => item.available || item.name === selected);
  return found.length > 1 ? found : [];
}

/** Chooses the model, and the agent if there are several. */
export function ModelPicker({ selected, onChoose }: { selected: Selection; onChoose: (change: Change) => void }) {
  const { models, agents, defaultModel } = useStore(useApp().catalog);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePopoverPosition(button, box, open);
  const model = selected.model ?? defaultModel;
  // An agent that runs as a program has a model of its own; choosing one of ours goes back to the built-in agent.
  const program = agents.find((item) => item.name === selected.agent && item.is_program);
  const choices: ModelChoice[] = [
    ...models.map((item) => ({
      id: `model:${item.id}`,
      name: item.name,
      note: item.available ? item.provider : (item.reason ?? "Unavailable"),
      group: "Models",
      disabled: !item.available,
      selected: !program && item.id === model,
      change: program ? { model: item.id, agent: BUILT_IN } : { model: item.id },
    })),
    ...offered(agents, selected.agent).map(({ name, reason }) => ({
      id: `agent:${name}`,
      name,
      group: "Agents",
      ...(reason === null ? {} : { note: reason, disabled: true }),
      selected: name === selected.agent,
      change: { agent: name },
    })),
  ];
  if (!choices.length) return null;
  const name = program?.name ?? models.find((item) => item.id === model)?.name ?? model ?? "Select a model";
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
        {open && <Picker label="Search models" choices={choices} onChoose={choose} autoFocus />}
      </div>
    </>
  );
}

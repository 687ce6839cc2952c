// Opens the options of an agent program in a chat, and shows those that were changed.

import { useRef, useState } from "react";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import { placePopover, usePopoverPosition } from "../widgets/use-popover-position.ts";
import styles from "./AgentOptions.module.css";
import { focusMessageBox } from "./focus.ts";
import picker from "./ModelPicker.module.css";
import { type AgentOption, describeValue, type OptionValue } from "./use-agent-options.ts";

const AgentOptionsPanel = lazyOverlay(() => import("./AgentOptionsPanel.tsx"));

export interface AgentChoices {
  readonly cwd: string | null;
  readonly options: readonly AgentOption[];
}

export interface AgentOptionsProps extends AgentChoices {
  agent: string;
  /** Each returns why the choice could not be made, or null. */
  onChooseDirectory: (path: string | null) => Promise<string | null>;
  onChooseOption: (id: string, value: OptionValue) => Promise<string | null>;
  /** Loads the options again. */
  reload: () => Promise<void>;
}

const changedOptions = (options: readonly AgentOption[]) =>
  options.filter(({ value, default: usual }) => value !== usual);

/** The end of a path, which says most. */
const lastName = (path: string): string => path.split("/").findLast(Boolean) ?? path;

/** What differs from the agent's defaults, above the message. */
export function AgentDifferences({ cwd, options }: AgentChoices) {
  const changed = changedOptions(options);
  if (cwd === null && !changed.length) return null;
  return (
    <ul className={styles.differences} aria-label="Chosen for the agent">
      {cwd !== null && (
        <li className={styles.difference} title={cwd}>
          <Icon name="folder" />
          <span className={text.ellipsis}>{lastName(cwd)}</span>
        </li>
      )}
      {changed.map((option) => (
        <li key={option.id} className={styles.difference}>
          <span className={text.ellipsis}>
            {option.name}: {describeValue(option, option.value)}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function AgentOptions(props: AgentOptionsProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePopoverPosition(button, box, open);
  const resized = () => {
    if (button.current && box.current) placePopover(button.current, box.current);
  };
  const close = () => {
    box.current?.hidePopover();
    focusMessageBox();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={classNames(picker.button, styles.button)}
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label="Agent options"
        title="Agent options"
        onClick={() => box.current?.togglePopover()}
      >
        <Icon name="terminal" />
        <span className={styles.label}>Options</span>
      </button>
      <div
        ref={box}
        className={classNames(popover.floating, styles.popover)}
        popover="auto"
        role="dialog"
        aria-label={`Options of ${props.agent}`}
        onToggle={(event) => setOpen(event.newState === "open")}
      >
        {open && <AgentOptionsPanel {...props} onClose={close} onResize={resized} />}
      </div>
    </>
  );
}

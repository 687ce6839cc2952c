// Opens the options of an agent program in a chat.

import { useRef, useState } from "react";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import popover from "../widgets/popover.module.css";
import { placePopover, usePopoverPosition } from "../widgets/use-popover-position.ts";
import styles from "./AgentOptions.module.css";
import { focusMessageBox } from "./focus.ts";
import picker from "./ModelPicker.module.css";
import type { AgentOption, OptionValue } from "./use-agent-options.ts";

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

export default function AgentOptions(props: AgentOptionsProps) {
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

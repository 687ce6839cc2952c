// Commands in the message box: a slash and the first letters of a command's name.

import { type KeyboardEvent, useState } from "react";
import { classNames } from "../widgets/class-names.ts";
import picker from "../widgets/Picker.module.css";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import styles from "./SlashCommands.module.css";

export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  readonly run: () => void;
}

/** Filters the commands by the typed text, and runs the active one on Enter or Tab. */
export function useSlashCommands(text: string, commands: readonly SlashCommand[], onRun: () => void) {
  const [cursor, setCursor] = useState(0);
  const prefix = /^\/([\w:.-]*)$/.exec(text)?.[1];
  const found = prefix === undefined ? [] : commands.filter((command) => command.name.startsWith(prefix));
  const active = Math.min(cursor, Math.max(0, found.length - 1));
  const run = (command: SlashCommand | undefined) => {
    onRun();
    command?.run();
  };
  /** Returns whether it handled the key. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!found.length) return false;
    if (step !== undefined) setCursor((active + step + found.length) % found.length);
    else if (event.key === "Enter" || event.key === "Tab") run(found[active]);
    else return false;
    event.preventDefault();
    return true;
  };
  return { found, active, run, onKeyDown };
}

export function SlashCommandList({ found, active, run }: Omit<ReturnType<typeof useSlashCommands>, "onKeyDown">) {
  if (!found.length) return null;
  return (
    <div className={classNames(popover.floating, styles.list)} role="listbox" aria-label="Commands">
      {found.map((command, n) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the message box handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the message box keeps the focus
        <div
          key={command.name}
          role="option"
          aria-selected={n === active}
          className={picker.choice}
          onPointerDown={(event) => event.preventDefault()} // keeps the focus in the message box
          onClick={() => run(command)}
        >
          <span className={classNames(text.ellipsis, picker.name)}>/{command.name}</span>
          <span className={picker.note}>{command.description}</span>
        </div>
      ))}
    </div>
  );
}

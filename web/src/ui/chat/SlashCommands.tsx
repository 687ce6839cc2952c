// Commands in the message box: a slash and the first letters of a command's name.

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
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

/** Filters the commands by the typed text; Enter or Tab runs the active one, Escape closes the list until the text changes. */
export function useSlashCommands(text: string, commands: readonly SlashCommand[], onRun: () => void) {
  const [cursor, setCursor] = useState(0);
  const [closedAt, setClosedAt] = useState<string | null>(null);
  const prefix = /^\/([\w:.-]*)$/.exec(text)?.[1];
  const found =
    prefix === undefined || closedAt === text ? [] : commands.filter((command) => command.name.startsWith(prefix));
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
    else if (event.key === "Escape") setClosedAt(text);
    else return false;
    event.preventDefault();
    return true;
  };
  return { found, active, run, onKeyDown };
}

export function SlashCommandList({ found, active, run }: Omit<ReturnType<typeof useSlashCommands>, "onKeyDown">) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  if (!found.length) return null;
  return (
    <div ref={list} className={classNames(popover.floating, styles.list)} role="listbox" aria-label="Commands">
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
          <span className={classNames(picker.note, styles.description)}>{command.description}</span>
        </div>
      ))}
    </div>
  );
}

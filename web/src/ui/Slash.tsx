// Commands in the message box: a slash, and the first letters of what to do.

import { type RefObject, useEffect, useId, useState } from "react";

export interface SlashCommand {
  readonly name: string;
  readonly does: string;
  readonly run: () => void;
}

interface Props {
  text: string;
  commands: readonly SlashCommand[];
  area: RefObject<HTMLTextAreaElement | null>;
  onRun: () => void;
}

export function Slash({ text, commands, area, onRun }: Props) {
  const [at, setAt] = useState(0);
  const id = useId();
  const asked = /^\/(\w*)$/.exec(text)?.[1];
  const found = asked === undefined ? [] : commands.filter((command) => command.name.startsWith(asked));
  const here = Math.min(at, Math.max(0, found.length - 1));

  useEffect(() => {
    const box = area.current;
    if (!box || !found.length) return;
    const keys = (event: KeyboardEvent) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step !== undefined) setAt((here + step + found.length) % found.length);
      else if (event.key === "Enter" || event.key === "Tab") {
        onRun();
        found[here]?.run();
      } else return;
      event.preventDefault();
    };
    box.addEventListener("keydown", keys);
    return () => box.removeEventListener("keydown", keys);
  });
  if (!found.length) return null;
  return (
    <div className="floating slash" role="listbox" aria-label="Commands" id={id}>
      {found.map((command, n) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: keys go to the message box
        // biome-ignore lint/a11y/useFocusableInteractive: the message box keeps the focus
        <div
          key={command.name}
          role="option"
          aria-selected={n === here}
          className={n === here ? "choice active" : "choice"}
          onClick={() => {
            onRun();
            command.run();
            area.current?.focus();
          }}
        >
          <span className="choice-name">/{command.name}</span>
          <span className="choice-note">{command.does}</span>
        </div>
      ))}
    </div>
  );
}

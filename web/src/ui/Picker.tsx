// Choose one of a list by typing: the model picker, the slash commands and the command palette are this.

import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";

export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly note?: string | undefined;
  readonly group?: string;
  readonly icon?: ReactNode;
  readonly disabled?: boolean;
  readonly selected?: boolean;
}

interface Props {
  label: string;
  placeholder: string;
  choices: readonly Choice[];
  onChoose: (choice: Choice) => void;
  onQuery?: (query: string) => void;
  autoFocus?: boolean;
}

export function matches(choice: Choice, query: string): boolean {
  const text = `${choice.name} ${choice.note ?? ""} ${choice.group ?? ""}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

export function Picker({ label, placeholder, choices, onChoose, onQuery, autoFocus = false }: Props) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const found = useMemo(() => choices.filter((choice) => matches(choice, query)), [choices, query]);
  const here = Math.min(at, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.querySelector(`[data-at="${here}"]`)?.scrollIntoView({ block: "nearest" });
  }, [here]);
  useEffect(() => {
    if (autoFocus) input.current?.focus();
  }, [autoFocus]);

  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length) {
      event.preventDefault();
      setAt((here + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const choice = found[here];
      if (choice && !choice.disabled) onChoose(choice);
    }
  };
  return (
    <div className="picker">
      <input
        ref={input}
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length ? `${id}-${here}` : undefined}
        aria-autocomplete="list"
        placeholder={placeholder}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
          onQuery?.(event.target.value);
        }}
        onKeyDown={keys}
        autoComplete="off"
        spellCheck={false}
      />
      <div ref={list} id={id} role="listbox" aria-label={label} className="choices">
        {found.map((choice, n) => (
          <ChoiceRow
            key={choice.id}
            choice={choice}
            heading={choice.group !== found[n - 1]?.group ? choice.group : undefined}
            id={`${id}-${n}`}
            at={n}
            active={n === here}
            choose={() => onChoose(choice)}
            point={() => setAt(n)}
          />
        ))}
      </div>
      {!found.length && <p className="quiet">Nothing like that.</p>}
    </div>
  );
}

interface RowProps {
  choice: Choice;
  heading: string | undefined;
  id: string;
  at: number;
  active: boolean;
  choose: () => void;
  point: () => void;
}

function ChoiceRow({ choice, heading, id, at, active, choose, point }: RowProps) {
  return (
    <>
      {heading && (
        <div className="choice-group" role="presentation">
          {heading}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: keys go to the box */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the box keeps the focus */}
      <div
        id={id}
        role="option"
        data-at={at}
        aria-selected={active}
        aria-disabled={choice.disabled}
        className={`choice${active ? " active" : ""}`}
        onClick={() => !choice.disabled && choose()}
        onPointerMove={point}
      >
        {choice.icon}
        <span className="choice-name">{choice.name}</span>
        {choice.note && <span className="choice-note">{choice.note}</span>}
        {choice.selected && <span className="choice-note">✓</span>}
      </div>
    </>
  );
}

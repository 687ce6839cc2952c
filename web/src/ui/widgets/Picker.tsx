// A filterable list to choose one item from: the model picker and the command palette use it.

import { Fragment, type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { classNames } from "./class-names.ts";
import { InlineCode } from "./InlineCode.tsx";
import styles from "./Picker.module.css";
import text from "./text.module.css";

export interface PickerItem {
  readonly id: string;
  readonly name: string;
  readonly note?: string | undefined;
  /** Shown below the name, such as why it cannot be chosen. */
  readonly detail?: string | undefined;
  readonly group: string;
  readonly disabled?: boolean;
  readonly selected?: boolean;
  /** Found by the server: it is shown whatever is typed. */
  readonly found?: boolean;
  /** Shown only while something is typed, or only while nothing is; otherwise always. */
  readonly when?: "searching" | "idle";
}

interface Props<T extends PickerItem> {
  /** The name of the search field, also shown as its placeholder. */
  label: string;
  choices: readonly T[];
  onChoose: (choice: T) => void;
  autoFocus?: boolean;
  onQuery?: (query: string) => void;
}

function matches(choice: PickerItem, query: string): boolean {
  if (choice.when && choice.when !== (query.trim() ? "searching" : "idle")) return false;
  if (choice.found) return true;
  const searched = `${choice.name} ${choice.note ?? ""} ${choice.detail ?? ""} ${choice.group}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searched.includes(word));
}

export function Picker<T extends PickerItem>({ label, choices, onChoose, autoFocus = false, onQuery }: Props<T>) {
  const [query, setQuery] = useState("");
  const [cursor, setCursor] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const found = useMemo(() => choices.filter((choice) => matches(choice, query)), [choices, query]);
  const active = Math.min(cursor, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.querySelector(`[data-index="${active}"]`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  useEffect(() => {
    if (autoFocus) input.current?.focus();
  }, [autoFocus]);

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length) {
      event.preventDefault();
      setCursor((active + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const choice = found[active];
      if (choice && !choice.disabled) onChoose(choice);
    }
  };
  return (
    <div className={styles.picker}>
      <input
        ref={input}
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length ? `${id}-${active}` : undefined}
        aria-autocomplete="list"
        placeholder={label}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setCursor(0);
          onQuery?.(event.target.value);
        }}
        onKeyDown={onKeyDown}
        autoComplete="off"
        spellCheck={false}
      />
      <div ref={list} id={id} role="listbox" aria-label={label} className={styles.choices}>
        {found.map((choice, n) => (
          <Fragment key={choice.id}>
            {choice.group !== found[n - 1]?.group && (
              <div className={styles.group} role="presentation">
                {choice.group}
              </div>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the search field handles the keys */}
            {/* biome-ignore lint/a11y/useFocusableInteractive: the search field keeps the focus */}
            <div
              id={`${id}-${n}`}
              role="option"
              data-index={n}
              aria-selected={n === active}
              aria-disabled={choice.disabled}
              className={styles.choice}
              onClick={() => !choice.disabled && onChoose(choice)}
              onPointerMove={() => setCursor(n)}
            >
              <span className={classNames(text.ellipsis, styles.name)}>{choice.name}</span>
              {choice.note && <span className={styles.note}>{choice.note}</span>}
              {choice.selected && <span className={styles.note}>✓</span>}
              {choice.detail && (
                <span className={styles.detail}>
                  <InlineCode text={choice.detail} />
                </span>
              )}
            </div>
          </Fragment>
        ))}
      </div>
      {!found.length && <p className={classNames(text.quiet, styles.noMatches)}>No matches</p>}
    </div>
  );
}

// A field for a number that may be missing. Unlike the browser's, it takes a decimal comma, and its arrow keys have steps
// that do not limit what can be typed.

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import forms from "./forms.module.css";

export interface NumberRange {
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** Where the arrow keys begin in an empty field. */
  readonly start: number;
  readonly whole?: boolean;
}

interface Props extends NumberRange {
  id: string;
  hintId: string | undefined;
  value: number | null;
  placeholder: string;
  onChange: (value: number | null) => void;
}

/** The number that was typed; null: nothing was, and undefined: it is none, or is out of range. */
export function parseNumber(typed: string, { min, max, whole }: NumberRange): number | null | undefined {
  const plain = typed.trim().replace(",", ".");
  if (plain === "") return null;
  const value = /^[-+]?(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : Number.NaN;
  return value >= min && value <= max && (!whole || Number.isInteger(value)) ? value : undefined;
}

/** What may still become a number in range. */
const BEGINNING = /^[+-]?0?[.,]?0*$/;

export function NumberField({ id, hintId, value, placeholder, onChange, ...range }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState("");
  const { min, max, step, start, whole } = range;
  const parsed = parseNumber(typed, range);
  const shown = parsed === undefined || (parsed !== null && parsed === value) ? typed : (value?.toString() ?? "");
  const kind = whole ? "a whole number" : "a number";
  const problemId = `${id}-problem`;
  const problem = parsed === undefined ? `Enter ${kind} from ${min} to ${max.toLocaleString("en")}.` : "";
  useEffect(() => input.current?.setCustomValidity(problem), [problem]);
  const reported = BEGINNING.test(typed) && !whole ? "" : problem;
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (direction === undefined) return;
    event.preventDefault();
    const moved = Math.round(((value ?? start) + direction * step) * 100) / 100;
    setTyped("");
    onChange(Math.min(max, Math.max(min, moved)));
  };
  return (
    <>
      <input
        ref={input}
        id={id}
        className={forms.field}
        role="spinbutton"
        inputMode="decimal"
        autoComplete="off"
        aria-describedby={[reported && problemId, hintId].filter(Boolean).join(" ") || undefined}
        aria-valuemin={min}
        aria-valuemax={max}
        aria-valuenow={value ?? undefined}
        aria-invalid={reported !== ""}
        placeholder={placeholder}
        value={shown}
        onKeyDown={onKeyDown}
        onChange={({ target }) => {
          setTyped(target.value);
          onChange(parseNumber(target.value, range) ?? null);
        }}
      />
      {reported && (
        <p id={problemId} className={forms.problem} role="alert">
          {reported}
        </p>
      )}
    </>
  );
}

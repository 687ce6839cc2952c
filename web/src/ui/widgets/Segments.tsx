import { useId } from "react";
import forms from "./forms.module.css";
import text from "./text.module.css";

interface Props<T extends string> {
  label: string;
  options: readonly (readonly [value: T, label: string])[];
  value: T;
  onChange: (value: T) => void;
}

/** A segmented control: one choice out of a few. */
export function Segments<T extends string>({ label, options, value, onChange }: Props<T>) {
  const name = useId();
  return (
    <fieldset className={forms.segments}>
      <legend className={text.visuallyHidden}>{label}</legend>
      {options.map(([option, optionLabel]) => (
        <label key={option}>
          <input type="radio" name={name} checked={value === option} onChange={() => onChange(option)} />
          {optionLabel}
        </label>
      ))}
    </fieldset>
  );
}

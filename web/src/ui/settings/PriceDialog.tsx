import { type FormEvent, useId, useState } from "react";
import type { PriceRequest } from "../../core/api-types.ts";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { NumberField, type NumberRange } from "../widgets/NumberField.tsx";
import text from "../widgets/text.module.css";
import styles from "./Usage.module.css";

const DOLLARS: NumberRange = { min: 0, max: 1_000_000, step: 0.1, start: 0 };

interface Props {
  model: string;
  /** What the cost is estimated with now. */
  price: PriceRequest | null;
  isOwn: boolean;
  onSave: (price: PriceRequest | null) => void;
  onClose: () => void;
}

export function PriceDialog({ model, price, isOwn, onSave, onClose }: Props) {
  const [input, setInput] = useState(price?.input ?? null);
  const [output, setOutput] = useState(price?.output ?? null);
  const [cached, setCached] = useState(price?.cached_input ?? null);
  const [missing, setMissing] = useState(false);
  const id = useId();
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (input === null || output === null) return setMissing(true);
    onSave({ input, output, cached_input: cached });
  };
  const fields = [
    ["Input", input, setInput, "0"],
    ["Output", output, setOutput, "0"],
    ["Cached input (optional)", cached, setCached, "Same as input"],
  ] as const;
  return (
    <Dialog name={`Price of ${model}`} onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={save}>
        <h2>Price of {model}</h2>
        <p id={`${id}-hint`} className={forms.hint}>
          US dollars per million tokens. Used to estimate costs, including those of past answers. A cost that the
          provider reports takes precedence.
        </p>
        <div className={styles.fields}>
          {fields.map(([label, value, onChange, placeholder]) => (
            <div key={label} className={styles.field}>
              <label htmlFor={`${id}-${label}`}>{label}</label>
              <NumberField
                id={`${id}-${label}`}
                hintId={`${id}-hint`}
                {...DOLLARS}
                value={value}
                placeholder={placeholder}
                onChange={onChange}
              />
            </div>
          ))}
        </div>
        {missing && (
          <p className={text.error} role="alert">
            Enter a price for input and output. For a model that costs nothing, enter 0.
          </p>
        )}
        <FormButtons>
          {isOwn && <Button onClick={() => onSave(null)}>Remove price</Button>}
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Save
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

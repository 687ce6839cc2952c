import type { Choice } from "../../core/comparison.ts";
import { useApp, useStore } from "../context.ts";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { isSubmitKey } from "../widgets/keyboard.ts";
import promptBox from "../widgets/prompt-box.module.css";
import styles from "./Compare.module.css";
import { type CompareOption, useSelectedOptions } from "./compare-options.ts";
import { useSavedChoice } from "./use-saved-choice.ts";

const MAX_PANES = 6;

interface Props {
  options: readonly CompareOption[];
  running: boolean;
  blind: boolean;
  onBlindChange: (blind: boolean) => void;
  onStart: (prompt: string, choices: readonly Choice[]) => void;
}

/** The prompt, the models to compare, and the blind test option. */
export function CompareForm({ options, running, blind, onBlindChange, onStart }: Props) {
  const { defaultModel } = useStore(useApp().catalog);
  const [prompt, setPrompt] = useSavedChoice("prompt", "");
  const [selected, setSelected] = useSelectedOptions(options);
  const unused = options.find(({ id }) => id !== "" && !selected.includes(id) && id !== `model:${defaultModel}`);
  const ready = prompt.trim() !== "" && !running;
  const submit = () => {
    if (ready)
      onStart(
        prompt,
        selected.map((id) => options.find((option) => option.id === id)?.choice ?? {}),
      );
  };
  return (
    <form
      className={classNames(promptBox.box, styles.form)}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        aria-label="Prompt"
        rows={2}
        placeholder="Ask all models"
        value={prompt}
        onChange={(event) => setPrompt(event.target.value)}
        onKeyDown={(event) => {
          if (isSubmitKey(event)) {
            event.preventDefault();
            submit();
          }
        }}
      />
      <div className={classNames(promptBox.bar, styles.bar)}>
        {selected.map((id, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same model may be selected twice
          <span key={n} className={styles.selected}>
            <select
              aria-label={`Model ${n + 1}`}
              value={id}
              onChange={(event) => setSelected(selected.with(n, event.target.value))}
            >
              {options.map((option) => (
                <option key={option.id} value={option.id}>
                  {option.name}
                </option>
              ))}
            </select>
            {selected.length > 2 && (
              <IconButton
                name={`Remove model ${n + 1}`}
                icon="close"
                onClick={() => setSelected(selected.toSpliced(n, 1))}
              />
            )}
          </span>
        ))}
        <IconButton
          name="Add model"
          icon="plus"
          disabled={selected.length >= MAX_PANES}
          onClick={() => setSelected([...selected, (unused ?? options[0])?.id ?? ""])}
        />
        <label className={forms.checkbox}>
          <input type="checkbox" checked={blind} onChange={(event) => onBlindChange(event.target.checked)} />
          Blind test
        </label>
        <span className={styles.submit}>
          <Button type="submit" variant="primary" disabled={!ready}>
            Compare
          </Button>
        </span>
      </div>
    </form>
  );
}

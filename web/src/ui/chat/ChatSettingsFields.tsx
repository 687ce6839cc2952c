// The fields of chat settings, for one chat and for the defaults. A field that differs is marked and can be reset.

import { type ReactNode, useId } from "react";
import {
  type ChatSettings,
  isMemoryOff,
  MODEL_DEFAULT,
  memoryChoice,
  type SettingName,
} from "../../core/chat-settings.ts";
import type { Model } from "../../core/types.ts";
import forms from "../widgets/forms.module.css";
import { NumberField, type NumberRange } from "../widgets/NumberField.tsx";
import styles from "./ChatSettingsFields.module.css";

interface FieldProps {
  label: string;
  /** Whether the value differs from the default. */
  changed: boolean;
  onReset: () => void;
  /** Not to send the setting, although it has a default. */
  onModelDefault?: (() => void) | undefined;
  hint?: ReactNode;
  children: (id: string, hintId: string | undefined) => ReactNode;
}

export function SettingField({ label, changed, onReset, onModelDefault, hint, children }: FieldProps) {
  const id = useId();
  const hintId = hint ? `${id}-hint` : undefined;
  return (
    <div className={styles.field}>
      <div className={styles.label}>
        <label htmlFor={id}>{label}</label>
        {changed && (
          <>
            <span className={styles.changed}>Changed</span>
            <button
              type="button"
              className={styles.reset}
              aria-label={`Reset ${label}`}
              onClick={() => {
                document.getElementById(id)?.focus(); // the button is about to go
                onReset();
              }}
            >
              Reset
            </button>
          </>
        )}
        {onModelDefault && (
          <button
            type="button"
            className={styles.reset}
            aria-label={`Use the model’s default for ${label}`}
            onClick={() => {
              document.getElementById(id)?.focus(); // the button is about to go
              onModelDefault();
            }}
          >
            Model default
          </button>
        )}
      </div>
      {children(id, hintId)}
      {hint && (
        <p id={hintId} className={forms.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

const EFFORTS: readonly (readonly [NonNullable<ChatSettings["reasoning_effort"]>, string])[] = [
  ["none", "None"],
  ["minimal", "Minimal"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
  ["xhigh", "Extra high"],
];

type NumberName = "temperature" | "top_p" | "max_tokens";
const NUMBERS: readonly (readonly [NumberName, string, NumberRange, string])[] = [
  ["temperature", "Temperature", { min: 0, max: 2, step: 0.1, start: 0 }, "From 0 to 2. Lower is more predictable."],
  ["top_p", "Top P", { min: 0.01, max: 1, step: 0.05, start: 1 }, "From 0.01 to 1. Lower is more focused."],
  [
    "max_tokens",
    "Max tokens",
    { min: 1, max: 1_000_000, step: 100, start: 0, whole: true },
    "Maximum length of an answer.",
  ],
];

const asNumber = (value: number | string | null | undefined): number | null =>
  typeof value === "number" ? value : null;

interface Props {
  values: ChatSettings;
  /** What counts where there is no value; null in the defaults themselves. */
  defaults: ChatSettings | null;
  /** The model that is used, to say what it ignores. */
  model: Model | null;
  isProgram: boolean;
  /** Whether the agent has instructions of its own, to which the system prompt is added. */
  hasInstructions: boolean;
  hasMemory: boolean;
  /** The label of the system prompt, if it has another one. */
  promptName?: string;
  /** The most characters that it may have. */
  maxPrompt?: number;
  onChange: (change: ChatSettings) => void;
}

export function ChatSettingsFields({
  values,
  defaults,
  model,
  isProgram,
  hasInstructions,
  hasMemory,
  promptName = "System prompt",
  maxPrompt = 1_000_000,
  onChange,
}: Props) {
  const common = (name: SettingName) => ({
    changed: values[name] != null,
    onReset: () => onChange({ [name]: null }),
  });
  /** Says that the model ignores a setting that has a value. */
  const hintFor = (name: SettingName, hint?: string) => {
    const value = values[name] ?? defaults?.[name];
    return value != null && value !== MODEL_DEFAULT && model && !model.settings.includes(name)
      ? `${model.name} ignores this setting.`
      : hint;
  };
  const inheritedEffort = EFFORTS.find(([value]) => value === defaults?.reasoning_effort)?.[1];
  const toolsByDefault = defaults?.use_tools ?? true;
  const system = defaults?.system ?? "";
  return (
    <>
      <SettingField
        label={promptName}
        hint={hasInstructions && "Added to Holdfast’s built-in instructions."}
        {...common("system")}
      >
        {(id, hintId) => (
          <textarea
            id={id}
            aria-describedby={hintId}
            className={forms.field}
            rows={4}
            maxLength={maxPrompt}
            placeholder="How should the model behave? For example: Answer in short sentences."
            value={values.system ?? system}
            onChange={({ target }) => onChange({ system: target.value === system ? null : target.value })}
          />
        )}
      </SettingField>
      {!isProgram && (
        <div className={styles.grid}>
          <SettingField
            label="Reasoning effort"
            hint={hintFor("reasoning_effort", "How long the model thinks before it answers.")}
            {...common("reasoning_effort")}
          >
            {(id, hintId) => (
              <select
                id={id}
                className={forms.field}
                aria-describedby={hintId}
                value={values.reasoning_effort ?? ""}
                onChange={({ target }) =>
                  onChange({
                    reasoning_effort:
                      target.value === MODEL_DEFAULT
                        ? MODEL_DEFAULT
                        : (EFFORTS.find(([value]) => value === target.value)?.[0] ?? null),
                  })
                }
              >
                <option value="">{inheritedEffort ? `Default (${inheritedEffort})` : "Model default"}</option>
                {inheritedEffort && <option value={MODEL_DEFAULT}>Model default</option>}
                {EFFORTS.map(([value, name]) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </SettingField>
          {NUMBERS.map(([name, label, range, hint]) => (
            <SettingField
              key={name}
              label={label}
              hint={hintFor(name, hint)}
              {...common(name)}
              onModelDefault={
                defaults?.[name] != null && values[name] == null // a changed field has room for Reset only
                  ? () => onChange({ [name]: MODEL_DEFAULT })
                  : undefined
              }
            >
              {(id, hintId) => (
                <NumberField
                  id={id}
                  hintId={hintId}
                  {...range}
                  start={asNumber(defaults?.[name]) ?? range.start}
                  placeholder={
                    defaults?.[name] == null || values[name] === MODEL_DEFAULT
                      ? "Model default"
                      : `Default (${defaults[name]})`
                  }
                  value={asNumber(values[name])}
                  onChange={(value) => onChange({ [name]: value })}
                />
              )}
            </SettingField>
          ))}
        </div>
      )}
      {!isProgram && (
        <SettingField
          label="Use tools"
          hint="Let the model read files, open pages and run commands."
          {...common("use_tools")}
        >
          {(id, hintId) => (
            <input
              id={id}
              type="checkbox"
              aria-describedby={hintId}
              checked={values.use_tools ?? toolsByDefault}
              onChange={({ target }) =>
                onChange({ use_tools: target.checked === toolsByDefault ? null : target.checked })
              }
            />
          )}
        </SettingField>
      )}
      {hasMemory && (
        <SettingField label="Use memory" hint="Use and save memories." {...common("memory")}>
          {(id, hintId) => (
            <input
              id={id}
              type="checkbox"
              aria-describedby={hintId}
              checked={!isMemoryOff(values, defaults)}
              onChange={({ target }) => onChange({ memory: memoryChoice(target.checked, defaults) })}
            />
          )}
        </SettingField>
      )}
    </>
  );
}

// Adds or changes a persona.

import { type FormEvent, useId, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { modelName, offeredModels } from "../../core/models.ts";
import { changePersona, createPersona, type PersonaResponse } from "../../core/persona-calls.ts";
import { useApp, useStore } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { PersonaPicture } from "../widgets/PersonaPicture.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import styles from "./McpServerDialog.module.css";

const TOOLS = [
  ["default", "Default"],
  ["on", "On"],
  ["off", "Off"],
] as const;
type Tools = (typeof TOOLS)[number][0];
const USE_TOOLS: Readonly<Record<Tools, boolean | null>> = { default: null, on: true, off: false };
const toolsOf = (persona: PersonaResponse | null): Tools =>
  persona?.use_tools == null ? "default" : persona.use_tools ? "on" : "off";

interface Props {
  /** The persona to change; null: one is added. */
  persona: PersonaResponse | null;
  onClose: () => void;
  onSaved: () => Promise<void>;
}

export function PersonaDialog({ persona, onClose, onSaved }: Props) {
  const app = useApp();
  const { models } = useStore(app.catalog);
  const id = useId();
  const fileInput = useRef<HTMLInputElement>(null);
  const [name, setName] = useState(persona?.name ?? "");
  const [emoji, setEmoji] = useState(persona?.emoji ?? "");
  const [picture, setPicture] = useState(persona?.picture ?? null);
  const [model, setModel] = useState(persona?.model ?? "");
  const [tools, setTools] = useState(() => toolsOf(persona));
  const [problem, setProblem] = useState<string | null>(null);
  const [edited, setEdited] = useState(false);
  const [saving, setSaving] = useState(false);
  const upload = async (file: File) => {
    setEdited(true);
    try {
      const { id: fileId, media_type } = await app.api.upload(file);
      if (!media_type.startsWith("image/")) throw new Error("Choose an image: PNG, JPEG, GIF or WebP.");
      setPicture(fileId);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const instructions = String(new FormData(event.currentTarget).get("instructions") ?? "").trim();
    const fields = {
      name: name.trim(),
      emoji: emoji.trim() || null,
      picture,
      model: model || null,
      instructions: instructions || null,
      use_tools: USE_TOOLS[tools],
    };
    setSaving(true);
    try {
      await (persona ? changePersona(app.api, persona, fields) : createPersona(app.api, fields));
      await onSaved();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
      setSaving(false);
    }
  };
  const title = persona ? `Edit ${persona.name}` : "Add persona";
  return (
    <Dialog name={title} onClose={onClose} className={styles.dialog} edited={edited}>
      <form className={dialogBodyClass} onInput={() => setEdited(true)} onSubmit={(event) => void save(event)}>
        <h2>{title}</h2>
        <label>
          Name
          <input
            required
            maxLength={60}
            value={name}
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <div className={text.row}>
          <PersonaPicture persona={{ name: name || "?", emoji: emoji.trim() || null, picture }} />
          {picture === null ? (
            <>
              <input
                className={forms.field}
                aria-label="Emoji"
                placeholder="Emoji"
                size={6}
                maxLength={16}
                value={emoji}
                autoComplete="off"
                onChange={(event) => setEmoji(event.target.value)}
              />
              <Button onClick={() => fileInput.current?.click()}>Upload image</Button>
            </>
          ) : (
            <Button
              onClick={() => {
                setPicture(null);
                setEdited(true);
              }}
            >
              Remove image
            </Button>
          )}
          <input
            ref={fileInput}
            type="file"
            accept="image/png,image/jpeg,image/gif,image/webp"
            hidden
            onChange={(event) => {
              const file = event.target.files?.[0];
              event.target.value = "";
              if (file) void upload(file);
            }}
          />
        </div>
        <label>
          Model
          <select className={forms.field} value={model} onChange={(event) => setModel(event.target.value)}>
            <option value="">Default</option>
            {model && !models.some((item) => item.id === model) && (
              <option value={model}>{modelName(models, model)}</option>
            )}
            {offeredModels(models, model || null).map(({ id: option, name: label, provider }) => (
              <option key={option} value={option}>
                {label} ({provider})
              </option>
            ))}
          </select>
        </label>
        <div className={text.row}>
          <b>Tools</b>
          <Segments
            label="Tools"
            options={TOOLS}
            value={tools}
            onChange={(chosen) => {
              setTools(chosen);
              setEdited(true);
            }}
          />
        </div>
        <label>
          Instructions
          <textarea
            className={forms.field}
            name="instructions"
            rows={7}
            maxLength={20_000}
            defaultValue={persona?.instructions ?? ""}
            aria-describedby={id}
          />
          <span id={id} className={forms.hint}>
            The system prompt of chats with this persona that have none of their own
          </span>
        </label>
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={saving}>
            {persona ? "Save" : "Add"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

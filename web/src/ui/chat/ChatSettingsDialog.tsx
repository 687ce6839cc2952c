// The settings of one chat: its model, its system prompt, and what it does differently from the defaults.

import { type FormEvent, useEffect, useState } from "react";
import type { SettingsResponse } from "../../core/api-types.ts";
import { type ChatSettings, ownSettings, SETTING_NAMES } from "../../core/chat-settings.ts";
import { modelLabel, modelName, offeredModels } from "../../core/models.ts";
import { listPersonas, type PersonaResponse } from "../../core/persona-calls.ts";
import { inheritedSettings } from "../../core/projects.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { useProject } from "../projects/use-project.ts";
import { Link, navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { InlineCode } from "../widgets/InlineCode.tsx";
import text from "../widgets/text.module.css";
import styles from "./ChatSettingsDialog.module.css";
import { ChatSettingsFields, SettingField } from "./ChatSettingsFields.tsx";

export type ChatWithModel = ChatSettings & { readonly model?: string | null; readonly persona?: string | null };

export interface ChatSettingsDialogProps {
  chat: ChatWithModel & { readonly agent: string | null; readonly project?: string | null };
  /** Returns why the settings could not be saved, or null. */
  onSave: (fields: ChatWithModel) => Promise<string | null>;
  onClose: () => void;
}

const BUILT_IN = "chat";

export default function ChatSettingsDialog({ chat, onSave, onClose }: ChatSettingsDialogProps) {
  const app = useApp();
  const { models, defaultModel: serverDefault, agents, chatDefaults } = useStore(app.catalog);
  const project = useProject(chat.project);
  const defaultModel = project?.model ?? serverDefault;
  const [fields, setFields] = useState<ChatSettings>(() => ownSettings(chat));
  const [model, setModel] = useState(chat.model ?? null);
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const [personaId, setPersonaId] = useState(chat.persona ?? null);
  const personas = usePersonas();
  const persona = personas.find(({ id }) => id === personaId);
  const hasMemory = useHasMemory();
  useEffect(() => app.checkCatalog(), [app]);
  const isProgram = agents.some((agent) => agent.name === chat.agent && agent.is_program);
  const usedModel = models.find(({ id }) => id === (model ?? defaultModel)) ?? null;
  const before = ownSettings(chat);
  const isEdited =
    personaId !== (chat.persona ?? null) ||
    model !== (chat.model ?? null) ||
    SETTING_NAMES.some((name) => fields[name] !== before[name]);
  const defaultsPage = project ? `/projects/${project.id}` : "/settings#chat-defaults";
  const leave = async () => {
    const detail = "Your changes to the settings of this chat are not saved.";
    if (!(await askConfirmation("Discard changes?", detail, "Discard")).confirmed) return;
    onClose();
    navigate(defaultsPage);
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setSaving(true);
    const chosen = personaId === (chat.persona ?? null) ? {} : { persona: personaId };
    const failed = await onSave({ ...fields, ...(isProgram ? {} : { model }), ...chosen });
    setSaving(false);
    setProblem(failed);
    if (failed === null) onClose();
  };
  return (
    <Dialog name="Chat settings" onClose={onClose} className={styles.dialog} edited={isEdited}>
      <form className={dialogBodyClass} onSubmit={(event) => void save(event)}>
        <h2>Chat settings</h2>
        {project && (
          <p className={text.quiet}>
            Settings that you don’t change here are those of the project <b>{project.name}</b>.
          </p>
        )}
        {(personas.length > 0 || personaId !== null) && (
          <SettingField label="Persona" hint={null} changed={personaId !== null} onReset={() => setPersonaId(null)}>
            {(id) => (
              <select
                id={id}
                className={forms.field}
                value={personaId ?? ""}
                onChange={(event) => {
                  setPersonaId(event.target.value || null);
                  const chosen = personas.find((each) => each.id === event.target.value);
                  if (chosen?.model) setModel(chosen.model);
                }}
              >
                <option value="">None</option>
                {personaId !== null && !persona && <option value={personaId}>Deleted persona</option>}
                {personas.map(({ id: option, name, emoji }) => (
                  <option key={option} value={option}>
                    {emoji ? `${emoji} ${name}` : name}
                  </option>
                ))}
              </select>
            )}
          </SettingField>
        )}
        {isProgram ? (
          <p className={text.quiet}>{chat.agent} has its own model and tools. Set them in its options.</p>
        ) : (
          <SettingField
            label="Model"
            hint={
              usedModel &&
              !usedModel.available && (
                <>
                  <InlineCode text={usedModel.reason ?? "Unavailable"} />{" "}
                  <Button onClick={() => void app.loadCatalog(true)}>Retry</Button>
                </>
              )
            }
            changed={model !== null && model !== defaultModel}
            onReset={() => setModel(null)}
          >
            {(id) => (
              <select
                id={id}
                className={forms.field}
                value={model ?? ""}
                onChange={(event) => setModel(event.target.value || null)}
              >
                <option value="">{defaultModel ? `Default (${modelName(models, defaultModel)})` : "Default"}</option>
                {model !== null && !models.some((item) => item.id === model) && <option value={model}>{model}</option>}
                {offeredModels(models, model ?? defaultModel).map((item) => (
                  <option key={item.id} value={item.id} disabled={!item.available && item.id !== model}>
                    {modelLabel(item)}
                  </option>
                ))}
              </select>
            )}
          </SettingField>
        )}
        <ChatSettingsFields
          values={fields}
          defaults={withPersona(inheritedSettings(project, chatDefaults), persona)}
          model={usedModel}
          isProgram={isProgram}
          hasInstructions={(chat.agent ?? BUILT_IN) === BUILT_IN}
          hasMemory={hasMemory}
          onChange={(change) => setFields((before) => ({ ...before, ...change }))}
        />
        {problem && <Alert text={problem} />}
        <div className={styles.footer}>
          <Link
            href={defaultsPage}
            onClick={(event) => {
              if (!isEdited) return onClose();
              event.preventDefault();
              void leave();
            }}
          >
            {project ? "Edit project" : "Edit defaults"}
          </Link>
          <FormButtons>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" variant="primary" disabled={saving}>
              Save
            </Button>
          </FormButtons>
        </div>
      </form>
    </Dialog>
  );
}

/** What the chat inherits, with what its persona sets. */
function withPersona(inherited: ChatSettings | null, persona: PersonaResponse | undefined): ChatSettings | null {
  if (!persona) return inherited;
  const { instructions, use_tools } = persona;
  return {
    ...inherited,
    ...(instructions === null ? {} : { system: instructions }),
    ...(use_tools === null ? {} : { use_tools }),
  };
}

function usePersonas(): readonly PersonaResponse[] {
  const { api } = useApp();
  const [personas, setPersonas] = useState<readonly PersonaResponse[]>([]);
  useEffect(() => {
    listPersonas(api).then(setPersonas, () => undefined);
  }, [api]);
  return personas;
}

/** Whether the server has a memory; assumed until it is known. */
function useHasMemory(): boolean {
  const { api } = useApp();
  const [hasMemory, setHasMemory] = useState(true);
  useEffect(() => {
    api.get<SettingsResponse>("/api/settings").then(
      ({ memory }) => setHasMemory(memory),
      () => undefined,
    );
  }, [api]);
  return hasMemory;
}

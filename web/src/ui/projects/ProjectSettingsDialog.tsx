// What the chats of a project have in common: instructions, model, agent, memory, and other settings.

import { type FormEvent, useEffect, useState } from "react";
import { agentTitle } from "../../core/agent-descriptions.ts";
import { errorMessage } from "../../core/api.ts";
import type { SettingsResponse, UpdateProjectRequest } from "../../core/api-types.ts";
import { type ChatSettings, ownSettings } from "../../core/chat-settings.ts";
import { modelLabel, modelName, offeredModels } from "../../core/models.ts";
import { patchProject } from "../../core/project-calls.ts";
import type { Project, ProjectColor } from "../../core/projects.ts";
import chatStyles from "../chat/ChatSettingsDialog.module.css";
import { ChatSettingsFields, SettingField } from "../chat/ChatSettingsFields.tsx";
import { useApp, useStore } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import text from "../widgets/text.module.css";
import { ProjectDot } from "./ProjectDot.tsx";
import styles from "./ProjectScreen.module.css";
import { MEMORY_CHOICES } from "./project-summary.ts";

const MAX_INSTRUCTIONS = 20_000;
const BUILT_IN = "chat";
const COLORS: readonly (readonly [ProjectColor, string])[] = [
  ["gray", "Gray"],
  ["red", "Red"],
  ["orange", "Orange"],
  ["yellow", "Yellow"],
  ["green", "Green"],
  ["teal", "Teal"],
  ["blue", "Blue"],
  ["purple", "Purple"],
  ["pink", "Pink"],
];

interface Props {
  project: Project;
  onSaved: (project: Project) => void;
  onClose: () => void;
}

export function ProjectSettingsDialog({ project, onSaved, onClose }: Props) {
  const app = useApp();
  const { models, defaultModel, agents, chatDefaults } = useStore(app.catalog);
  const [name, setName] = useState(project.name);
  const [color, setColor] = useState(project.color);
  const [model, setModel] = useState(project.model);
  const [agent, setAgent] = useState(project.agent);
  const [memory, setMemory] = useState(project.memory);
  const [fields, setFields] = useState<ChatSettings>(() => own(project));
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const hasMemory = useHasMemory();
  useEffect(() => app.checkCatalog(), [app]);
  const usedModel = models.find(({ id }) => id === (model ?? defaultModel)) ?? null;
  const isProgram = agents.some((item) => item.name === agent && item.is_program);
  const { system, memory: _, ...parameters } = fields;
  const changed: UpdateProjectRequest = {
    ...(parameters as UpdateProjectRequest),
    name: name.trim(),
    color: color as ProjectColor | null,
    instructions: system || null,
    model: isProgram ? null : model,
    agent,
    memory,
  };
  const isEdited = Object.entries(changed).some(
    ([key, value]) => (value ?? null) !== (project[key as keyof Project] ?? null),
  );
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setSaving(true);
    try {
      const saved = await patchProject(app.api, project.id, changed);
      if (app.newChat.choices.get().project === project.name) app.newChat.choose({ project: saved.name });
      onSaved(saved);
      void app.projects.refresh();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setSaving(false);
  };
  return (
    <Dialog name="Project settings" onClose={onClose} className={chatStyles.dialog} edited={isEdited}>
      <form className={dialogBodyClass} onSubmit={(event) => void save(event)}>
        <h2>Project settings</h2>
        <p className={text.quiet}>Applies to chats that don’t set their own value, starting with the next message.</p>
        <label>
          Name
          <input
            className={forms.field}
            value={name}
            maxLength={200}
            required
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <fieldset className={styles.colors}>
          <legend>Color</legend>
          {COLORS.map(([value, label]) => (
            <label key={value} title={label}>
              <input
                type="radio"
                name="color"
                aria-label={label}
                checked={(color ?? "gray") === value}
                onChange={() => setColor(value)}
              />
              <ProjectDot color={value} />
            </label>
          ))}
        </fieldset>
        <SettingField
          label="Agent"
          hint="For new chats. A chat keeps its agent when it is moved."
          changed={agent !== null}
          onReset={() => setAgent(null)}
        >
          {(id, hintId) => (
            <select
              id={id}
              className={forms.field}
              aria-describedby={hintId}
              value={agent ?? ""}
              onChange={(event) => setAgent(event.target.value || null)}
            >
              <option value="">Default ({agentTitle(BUILT_IN)})</option>
              {agent !== null && !agents.some((item) => item.name === agent) && <option value={agent}>{agent}</option>}
              {agents
                .filter((item) => item.available || item.name === agent)
                .map((item) => (
                  <option key={item.name} value={item.name}>
                    {agentTitle(item.name)}
                  </option>
                ))}
            </select>
          )}
        </SettingField>
        {!isProgram && (
          <SettingField label="Model" changed={model !== null} onReset={() => setModel(null)}>
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
          defaults={chatDefaults}
          model={usedModel}
          isProgram={isProgram}
          hasInstructions={(agent ?? BUILT_IN) === BUILT_IN}
          hasMemory={false}
          promptName="Instructions"
          maxPrompt={MAX_INSTRUCTIONS}
          onChange={(change) => setFields((before) => ({ ...before, ...change }))}
        />
        {hasMemory && (
          <SettingField
            label="Memory"
            hint="A chat that is moved here uses this memory from its next message on."
            changed={memory !== null}
            onReset={() => setMemory(null)}
          >
            {(id, hintId) => (
              <select
                id={id}
                className={forms.field}
                aria-describedby={hintId}
                value={memory ?? ""}
                onChange={(event) =>
                  setMemory(MEMORY_CHOICES.find(([value]) => value === event.target.value)?.[0] ?? null)
                }
              >
                <option value="">Default</option>
                {MEMORY_CHOICES.map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </SettingField>
        )}
        {problem && <Alert text={problem} />}
        <div className={chatStyles.footer}>
          <span />
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

const own = (project: Project): ChatSettings => ({
  ...ownSettings({ ...project, memory: null }),
  system: project.instructions,
});

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

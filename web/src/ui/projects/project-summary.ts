import { agentTitle } from "../../core/agent-descriptions.ts";
import { MODEL_DEFAULT } from "../../core/chat-settings.ts";
import { modelName } from "../../core/models.ts";
import type { Project } from "../../core/projects.ts";
import type { Model } from "../../core/types.ts";

export const MEMORY_CHOICES: readonly (readonly [NonNullable<Project["memory"]>, string])[] = [
  ["shared", "Shared with all chats"],
  ["project", "Only this project"],
  ["project_and_shared", "This project, and recall shared memories"],
  ["none", "Off"],
];

/** The settings in which a project differs from the defaults, to be shown. */
export function summary(project: Project, models: readonly Model[]): readonly (readonly [string, string])[] {
  const tools = project.use_tools === null ? null : project.use_tools ? "On" : "Off";
  const values = [
    ["Model", project.model && modelName(models, project.model)],
    ["Agent", project.agent && agentTitle(project.agent)],
    ["Reasoning effort", project.reasoning_effort],
    ["Temperature", project.temperature],
    ["Top P", project.top_p],
    ["Max tokens", project.max_tokens],
    ["Tools", tools],
    ["Memory", MEMORY_CHOICES.find(([value]) => value === project.memory)?.[1] ?? null],
  ] as const;
  return values.flatMap(([label, value]) =>
    value === null ? [] : [[label, value === MODEL_DEFAULT ? "Model default" : String(value)] as const],
  );
}

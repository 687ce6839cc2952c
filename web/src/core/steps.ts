// The steps of an assistant message: which parts the model wrote in one answer, as in `holdfast.core.steps`.

import type { Part, ReasoningPart, TextPart, ToolPart } from "./types.ts";

type ModelPart = TextPart | ReasoningPart | ToolPart;

const isModelPart = (part: Part): part is ModelPart =>
  part.type === "text" || part.type === "reasoning" || part.type === "tool";

/** Whether a part of this type begins a step at `index`, as far as positions tell. */
export function beginsByPosition(parts: readonly Part[], index: number, type: ModelPart["type"]): boolean {
  for (let before = index - 1; before >= 0; before--) {
    const previous = parts[before];
    if (previous?.type === "steered") return true;
    if (previous && isModelPart(previous)) return previous.type === "tool" && type !== "tool";
  }
  return true;
}

/** Whether the model was cut off in the last step: its next answer continues the step. */
export function hasOpenStep(parts: readonly Part[]): boolean {
  let found = false;
  for (let index = parts.length - 1; index >= 0; index--) {
    const part = parts[index];
    if (part?.type === "steered") break;
    if (!part || !isModelPart(part)) continue;
    found = true;
    if (part.type === "tool" && (part.state === "done" || part.state === "denied" || hasCompleteArgs(part)))
      return false;
    if (part.begins_step ?? beginsByPosition(parts, index, part.type)) break;
  }
  return found;
}

function hasCompleteArgs({ args }: ToolPart): boolean {
  let value: unknown = args;
  if (typeof args === "string") {
    try {
      value = JSON.parse(args);
    } catch {
      return false;
    }
  }
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Calls that an agent denied by itself because nobody answered in time, and that can be allowed later.

import type { Part, ToolPart } from "./types.ts";

/** The same text as `holdfast.core.late_approvals.NO_ANSWER`. */
const NO_ANSWER = "Nobody answered in time, so it was denied.";

export function unansweredCalls(parts: readonly Part[]): readonly ToolPart[] {
  return parts.filter(
    (part): part is ToolPart => part.type === "tool" && part.state === "denied" && part.result === NO_ANSWER,
  );
}

// Questions of the model to its user: what it asks, and which answers fit, as in `holdfast.core.user_questions`.

import { type ApprovalRequest, isJsonObject, type ToolPart } from "./types.ts";

/** The tool whose calls are questions. */
export const ASK_USER = "ask_user";

/** What the model is told about a question that was skipped, as `holdfast.core.user_questions.SKIPPED`. */
const SKIPPED = "The user did not answer this question. Continue without the answer.";

export const isSkipped = ({ name, result }: ToolPart): boolean => name === ASK_USER && result === SKIPPED;

export interface UserQuestion {
  readonly question: string;
  /** Answers to choose from. */
  readonly options: readonly string[];
  /** Whether another answer can be written. */
  readonly takesText: boolean;
}

/** The question, if the request is one of the model. Its id says so; a program can give its call any name. */
export function questionOf({ approval_id, args }: ApprovalRequest): UserQuestion | null {
  if (!approval_id.startsWith("ask_") || !isJsonObject(args)) return null;
  const options = Array.isArray(args.options) ? args.options.map(String) : [];
  return { question: String(args.question ?? ""), options, takesText: args.allow_text !== false || !options.length };
}

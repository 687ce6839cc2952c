// How fast an answer was written.

import type { Message } from "./types.ts";

/**
 * Output tokens per second of the whole answer, with the wait for the first token. null if tools or questions took a part
 * of the time, or if the answer has no duration or no count of tokens.
 */
export function tokensPerSecond({ parts, usage, duration_ms: ms }: Pick<Message, "parts" | "usage" | "duration_ms">) {
  if (!usage?.output_tokens || !ms || parts.some(({ type }) => type === "tool")) return null;
  return (1000 * usage.output_tokens) / ms;
}

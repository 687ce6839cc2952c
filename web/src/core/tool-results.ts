// What a tool call is called, and how it ended, as people read it.

import type { Part, ToolPart } from "./types.ts";

/** The name of a tool, with its MCP server in parentheses: `tides__high_tide` is "high_tide (tides)". */
export function toolLabel(name: string): string {
  const at = name.indexOf("__");
  return at > 0 && at + 2 < name.length ? `${name.slice(at + 2)} (${name.slice(0, at)})` : name;
}

/**
 * Whether a call of an open run waits for the calls before it. A run that went on after an approval or a restart has
 * marked those that had not begun as not run.
 */
export function isQueued(parts: readonly Part[], at: number): boolean {
  const part = parts[at];
  if (part?.type !== "tool") return false;
  if (part.state === "not_run") return parts.slice(at).every(({ type }) => type === "tool");
  const begun = (earlier: Part) => earlier.type === "tool" && ["waiting", "running"].includes(earlier.state);
  return part.state === "pending" && (at < parts.length - 1 || parts.slice(0, at).some(begun));
}

/** The exit code of a command that failed: the shell tool ends its result with it. */
export function failedExitCode({ name, state, result }: ToolPart): number | null {
  if (name !== "shell" || state !== "done" || typeof result !== "string") return null;
  const code = Number(/\[exit code (-?\d+)\]\s*$/.exec(result)?.[1] ?? 0);
  return code === 0 ? null : code;
}

/** Whether the result contains the output that was shown while the tool ran. */
export function repeatsOutput({ state, output, result }: ToolPart): boolean {
  return state === "done" && typeof result === "string" && result.includes((output ?? "").trim());
}

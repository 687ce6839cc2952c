// What a tool call is called, and how it ended, as people read it.

import type { ToolPart } from "./types.ts";

/** The name of a tool, with its MCP server in parentheses: `tides__high_tide` is "high_tide (tides)". */
export function toolLabel(name: string): string {
  const at = name.indexOf("__");
  return at > 0 && at + 2 < name.length ? `${name.slice(at + 2)} (${name.slice(0, at)})` : name;
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

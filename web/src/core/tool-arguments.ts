// The arguments of a tool call as people read them: text as text, with its line breaks, and only the rest as JSON.

import { isJsonObject, type Json } from "./types.ts";

export interface Argument {
  /** null for arguments that have no names. */
  readonly name: string | null;
  readonly text: string;
}

const MAX_SUMMARY = 80;

const toText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function listArguments(args: Json): readonly Argument[] {
  if (args === null || args === "") return [];
  if (!isJsonObject(args)) return [{ name: null, text: toText(args) }];
  return Object.entries(args).map(([name, value]) => ({ name, text: toText(value) }));
}

/** Returns the first string or number of the arguments, a path, a command or a query, in one line. */
export function summarizeArguments(args: Json): string {
  const values = isJsonObject(args) ? Object.values(args) : [args];
  const value = values.find((item) => typeof item === "string" || typeof item === "number");
  const whole = String(value ?? "").trim();
  const line = whole.split("\n", 1)[0]?.slice(0, MAX_SUMMARY) ?? "";
  return line.length < whole.length ? `${line.trimEnd()}…` : line;
}

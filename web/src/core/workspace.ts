// The files that a chat's agent works on: their addresses, their paths, and tables in their text.

import type { Message, ToolPart } from "./types.ts";

type Parameters = Readonly<Record<string, string | number | boolean | null>>;

/** The address of a call about a chat's files. */
export function workspaceAddress(sid: string, call: string, parameters: Parameters = {}): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== false && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/api/sessions/${encodeURIComponent(sid)}/workspace${call && `/${call}`}${query && `?${query}`}`;
}

/** Characters that a path of the API has as codes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: names of files may contain them
const CODED = /[%\x00-\x1f\x7f-\x9f]/g;

/** The path of a file that an agent named, as the API has it; null if it is not in the directory. */
export function pathInWorkspace(named: string, directory: string): string | null {
  const place = named.replace(/^file:\/\//, "").replace(/(:\d+){1,2}$/, "");
  const root = directory.endsWith("/") ? directory : `${directory}/`;
  if (place.startsWith("/") && !place.startsWith(root)) return null;
  const names = (place.startsWith("/") ? place.slice(root.length) : place).split("/").filter((x) => x && x !== ".");
  if (!names.length || names.includes("..")) return null;
  return pathOfName(names.join("/"));
}

/** The path of a name, or of some separated by slashes, that a person typed. */
export const pathOfName = (name: string): string => name.replace(CODED, encodeURIComponent);
export const joinPath = (folder: string, name: string): string => (folder ? `${folder}/${name}` : name);
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** The directories that lead to a path, and the path itself, each with its own name. */
export function breadcrumbs(path: string): readonly { readonly name: string; readonly path: string }[] {
  const names = path ? path.split("/") : [];
  return names.map((name, n) => ({ name, path: names.slice(0, n + 1).join("/") }));
}

/** Changes when an agent may have changed files: a tool of the newest messages ended, or a run. */
export function workOf(messages: readonly Message[]): string {
  const newest = messages.at(-1);
  if (!newest) return "";
  const ended = newest.parts.filter((part): part is ToolPart => part.type === "tool" && part.state === "done");
  return `${newest.id} ${newest.status === "streaming" ? "" : newest.status} ${ended.length}`;
}

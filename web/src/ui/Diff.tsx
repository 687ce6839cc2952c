// What an edit changes, line by line.

import type { Json, JsonObject } from "../core/wire.ts";

interface Edit {
  readonly before: string;
  readonly after: string;
  readonly path: string;
}

const NAMES: readonly (readonly [string, string])[] = [
  ["old_string", "new_string"],
  ["old_text", "new_text"],
  ["old", "new"],
  ["find", "replace"],
  ["before", "after"],
];

/** The edit that a tool's arguments describe, if they do. */
export function editOf(args: Json): Edit | null {
  if (args === null || typeof args !== "object" || Array.isArray(args)) return null;
  const fields = args as JsonObject;
  for (const [old, fresh] of NAMES) {
    const [before, after] = [fields[old], fields[fresh]];
    if (typeof before === "string" && typeof after === "string") {
      return { before, after, path: String(fields.path ?? fields.file ?? fields.file_path ?? "Edit") };
    }
  }
  return null;
}

type Line = readonly ["same" | "gone" | "new", string];
const MOST = 400;

export function diff(before: string, after: string): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > MOST || b.length > MOST) {
    return [...a.map((line): Line => ["gone", line]), ...b.map((line): Line => ["new", line])];
  }
  // Longest common subsequence, from the back.
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => best[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      (best[i] as Uint16Array)[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(["same", a[i] as string]);
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) lines.push(["gone", a[i++] as string]);
    else lines.push(["new", b[j++] as string]);
  }
  return lines;
}

const SIGNS = { same: " ", gone: "−", new: "+" } as const;

export function Diff({ before, after, name }: { before: string; after: string; name: string }) {
  return (
    <div className="block">
      <h4>{name}</h4>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <pre className="diff" tabIndex={0}>
        {diff(before, after).map(([kind, line], n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
          <span key={n} className={kind}>
            {SIGNS[kind]} {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </div>
  );
}

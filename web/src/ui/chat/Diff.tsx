// Shows an edit as a line diff.

import { escapeInvisible } from "../../core/invisible-characters.ts";
import { isJsonObject, type Json } from "../../core/types.ts";
import text from "../widgets/text.module.css";
import styles from "./Diff.module.css";

interface Edit {
  readonly before: string;
  readonly after: string;
  readonly name: string;
}

/** The names that tools give to the old and the new text. */
const FIELDS: readonly (readonly [string, string])[] = [
  ["old_string", "new_string"],
  ["old_text", "new_text"],
  ["old", "new"],
  ["find", "replace"],
  ["before", "after"],
];

/** Returns the edits that a tool's arguments describe: one, or those in a list of edits. */
export function editsOf(args: Json): readonly Edit[] {
  const listed = isJsonObject(args) && Array.isArray(args.edits) ? args.edits : [args];
  const edits = listed.map(editOf);
  return edits.every((edit) => edit !== null) ? edits : [];
}

function editOf(args: Json): Edit | null {
  if (!isJsonObject(args)) return null;
  for (const [old, fresh] of FIELDS) {
    const [before, after] = [args[old], args[fresh]];
    if (typeof before === "string" && typeof after === "string") {
      return { before, after, name: String(args.path ?? args.file ?? args.file_path ?? "Edit") };
    }
  }
  return null;
}

type Line = readonly ["same" | "removed" | "added", string];
/** Longer texts are shown as a full replacement: the diff takes quadratic time. */
const MAX_LINES = 400;

function diffLines(before: string, after: string): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > MAX_LINES || b.length > MAX_LINES) {
    return [...a.map((line): Line => ["removed", line]), ...b.map((line): Line => ["added", line])];
  }
  // Longest common subsequence, computed from the end.
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
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1)))
      lines.push(["removed", a[i++] as string]);
    else lines.push(["added", b[j++] as string]);
  }
  return lines;
}

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

export function Diff({ before, after, name }: Edit) {
  return (
    <div className={text.block}>
      <p className={text.blockTitle}>{escapeInvisible(name)}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre className={styles.diff} tabIndex={0}>
        {diffLines(before, after).map(([kind, line], n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
          <span key={n} className={styles[kind]}>
            {SIGNS[kind]} {escapeInvisible(line)}
            {"\n"}
          </span>
        ))}
      </pre>
    </div>
  );
}

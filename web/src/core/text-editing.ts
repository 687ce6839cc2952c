// Editing plain text: indentation, line endings, and which lines two versions differ in.

export interface TextEdit {
  /** What is replaced. */
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** The selection afterwards. */
  readonly start: number;
  readonly end: number;
}

/** The first indentation in a text; two spaces if it has none. */
export function indentationOf(text: string): string {
  const found = /^(\t| {2,8})\S/m.exec(text)?.[1];
  return found ?? "  ";
}

/** What Tab does: it indents the selected lines, or inserts an indentation where nothing is selected. */
export function indent(text: string, start: number, end: number, unit: string): TextEdit {
  if (start === end) return { from: start, to: end, text: unit, start: start + unit.length, end: start + unit.length };
  const [from, to] = wholeLines(text, start, end);
  const lines = text.slice(from, to).split("\n");
  const indented = lines.map((line) => (line ? unit + line : line));
  const added = indented.join("\n").length - (to - from);
  return { from, to, text: indented.join("\n"), start: start + (lines[0] ? unit.length : 0), end: end + added };
}

/** What Shift+Tab does: it removes one indentation from each of the selected lines. */
export function outdent(text: string, start: number, end: number, unit: string): TextEdit {
  const [from, to] = wholeLines(text, start, end);
  const lines = text.slice(from, to).split("\n");
  const cut = (line: string) => {
    if (line.startsWith("\t")) return 1;
    return Math.min(line.length - line.trimStart().length, unit === "\t" ? 2 : unit.length);
  };
  const removed = lines.reduce((sum, line) => sum + cut(line), 0);
  const moved = Math.max(from, start - cut(lines[0] ?? ""));
  const result = lines.map((line) => line.slice(cut(line))).join("\n");
  return { from, to, text: result, start: moved, end: Math.max(moved, end - removed) };
}

/** The range of the lines of a selection. A line is not part of it if only its beginning is reached. */
function wholeLines(text: string, start: number, end: number): readonly [number, number] {
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const last = end > start && text[end - 1] === "\n" ? end - 1 : end;
  const to = text.indexOf("\n", last);
  return [from, to < 0 ? text.length : to];
}

export interface LineEndings {
  /** What ends a line when the text is saved. */
  readonly ending: "\n" | "\r\n";
  /** Whether saving changes the ends of some lines. */
  readonly mixed: boolean;
}

/** A text field knows one line ending only: the others come back when the text is saved. */
export function lineEndingsOf(text: string): LineEndings {
  const all = text.match(/\r\n|\r|\n/g) ?? [];
  const windows = all.filter((each) => each === "\r\n").length;
  const ending = windows * 2 > all.length ? "\r\n" : "\n";
  return { ending, mixed: all.some((each) => each !== ending) };
}

export const toTextField = (text: string): string => text.replace(/\r\n?/g, "\n");
export const fromTextField = (text: string, { ending }: LineEndings): string =>
  ending === "\n" ? text : text.replaceAll("\n", ending);

/** A version beside another one: the lines that both begin and end with, and those between that differ. */
export interface VersionText {
  readonly before: string;
  readonly changed: string;
  readonly after: string;
}

export function compareTexts(one: string, other: string): readonly [VersionText, VersionText] {
  const a = one.split("\n");
  const b = other.split("\n");
  let head = 0;
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const cut = (lines: readonly string[]): VersionText => ({
    before: lines.slice(0, head).join("\n"),
    changed: lines.slice(head, lines.length - tail).join("\n"),
    after: lines.slice(lines.length - tail).join("\n"),
  });
  return [cut(a), cut(b)];
}

// Splits Markdown into blocks that render independently: while text streams in, only the last block changes. What would
// take too long to parse becomes a plain block, because some constructs take quadratic time or nest without a limit.

import { extractFormulas, isSafeFormula } from "./formulas.ts";
import { type Footnote, readDefinitions } from "./markdown-definitions.ts";

const FENCE = /^( {0,3})(`{3,}|~{3,})(.*)/;
const LIST = /^ {0,3}([-*+]|\d{1,9}[.)])\s/;
const FOOTNOTE = /^ {0,3}\[\^[^\]\s]+\]:/;
const CONTAINER = /[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=\s))/y;
const MARK = /[*_~[\]`<\n]/g;
const FORMULA_MARK = /\$|\\[([]/g;
const ELEMENT_MARK = /[*_~[\]`<\n|]/g;
const LINK_MARK = /@|www\.|:\/\/|\]\(/g;

/** Work is counted in characters of ordinary text, of which a slow machine parses about 200 in a millisecond. */
const WORK_PER_BLOCK = 100;
const WORK_PER_FORMULA_MARK = 100;
/** Elements take longer to make, to style and to lay out than their text takes to parse: a table of single letters has
 * one for every two characters. Counted for the whole text, of which a block may have many in a few lines. */
const WORK_PER_ELEMENT_MARK = 10;
const WORK_PER_LINK_MARK = 24;
/** A character becomes up to four elements, whose layout takes longer than their parsing. */
const WORK_PER_FORMULA_CHARACTER = 25;
/** Each cell of a matrix takes several elements. */
const WORK_PER_FORMULA_CELL = 20;
/** Parsing takes time in proportion to the square of the delimiters and lines of a block. */
const MARKS_PER_WORK = 200;
const MAX_BLOCK_WORK = 50_000;
const MAX_BLOCK_FORMULA_WORK = 150_000;
const MAX_TEXT_WORK = 400_000;
const MAX_NESTING = 100;
/** Code is not parsed, but highlighted. */
const CODE_PER_WORK = 4;
const WORK_PER_CODE_BLOCK = 200;
const WORK_PER_DIAGRAM = 4_000;
/** A growing block that takes more work than this is rendered again only after a pause of four times its own time. */
const MAX_FREQUENT_WORK = 4_000;
const PAUSE_PER_WORK_MS = 1 / 50;

export interface Block {
  readonly start: number;
  readonly text: string;
  /** `code` is one fenced code block; `plain` is shown as it is written. */
  readonly kind: "markdown" | "code" | "plain";
  /** The work for this block and all before it. */
  readonly work: number;
  /** The labels in brackets, which may refer to definitions in other blocks. */
  readonly labels: readonly string[];
  readonly links: ReadonlyMap<string, string>;
  readonly footnotes: readonly Footnote[];
}

export interface Fence {
  readonly code: string;
  readonly language: string;
}

/** `previous` is an earlier result for a prefix of `text`; its finished blocks are reused. */
export function splitBlocks(text: string, previous: readonly Block[] = []): Block[] {
  const blocks = finishedBlocks(text, previous);
  const last = blocks.at(-1);
  let start = last ? last.start + last.text.length : 0;
  let work = last?.work ?? 0;
  while (start < text.length) {
    const end = work < MAX_TEXT_WORK ? endOfBlock(text, start) : text.length;
    const block = makeBlock(start, text.slice(start, end), work);
    blocks.push(block);
    work = block.work;
    start = end;
  }
  return blocks;
}

/** Milliseconds to wait before the last block is rendered again with what has been added to it. */
export function pauseBetweenRenders(blocks: readonly Block[]): number {
  const work = (blocks.at(-1)?.work ?? 0) - (blocks.at(-2)?.work ?? 0);
  return work > MAX_FREQUENT_WORK ? work * PAUSE_PER_WORK_MS : 0;
}

function finishedBlocks(text: string, previous: readonly Block[]): Block[] {
  // The last block may have grown, and with it the blank line that ends the one before.
  const finished = previous.slice(0, -2);
  const last = finished.at(-1);
  return last && text.startsWith(last.text, last.start) ? finished : [];
}

function endOfBlock(text: string, start: number): number {
  let at = endOfLine(text, start);
  const first = text.slice(start, at);
  const fence = openedFence(first);
  if (fence) return endOfFence(text, at, fence);
  let inner: string | null = null; // a fence that is inside a list
  let math = opensMath(first);
  let blank = first.trim() === "";
  while (at < text.length) {
    const end = endOfLine(text, at);
    const line = text.slice(at, end);
    const mark = math ? null : openedFence(line);
    if (inner === null && !math && startsBlock(line, first, blank, mark !== null)) return at;
    inner = inner === null ? mark : closesFence(line, inner) ? null : inner;
    if (inner === null) math = math ? !closesMath(line) : opensMath(line);
    blank = line.trim() === "" && inner === null && !math;
    at = end;
  }
  return at;
}

/** Whether a line starts a new block after one that has this first line. */
function startsBlock(line: string, first: string, afterBlank: boolean, fence: boolean): boolean {
  const list = LIST.test(first);
  if (/^\s/.test(line) && (list || FOOTNOTE.test(first) || line.trim() === "")) return false; // belongs to the item
  return fence || (afterBlank && line.trim() !== "" && !(list && LIST.test(line)));
}

function endOfFence(text: string, start: number, fence: string): number {
  let at = start;
  while (at < text.length) {
    const end = endOfLine(text, at);
    const closed = closesFence(text.slice(at, end), fence);
    at = end;
    if (closed) break;
  }
  while (at < text.length) {
    const end = endOfLine(text, at);
    if (text.slice(at, end).trim() !== "") break;
    at = end;
  }
  return at;
}

function endOfLine(text: string, at: number): number {
  const newline = text.indexOf("\n", at);
  return newline < 0 ? text.length : newline + 1;
}

function openedFence(line: string): string | null {
  const match = FENCE.exec(line);
  const mark = match?.[2];
  return mark && !(mark.startsWith("`") && match?.[3]?.includes("`")) ? mark : null;
}

function closesFence(line: string, fence: string): boolean {
  const mark = FENCE.exec(line)?.[2];
  return mark !== undefined && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark;
}

const opensMath = (line: string): boolean => line.trim() === "$$" || line.trim() === "\\[";
const closesMath = (line: string): boolean => line.trim() === "$$" || line.trim() === "\\]";

function makeBlock(start: number, text: string, before: number): Block {
  if (before >= MAX_TEXT_WORK) return plainBlock(start, text, before);
  if (openedFence(text)) {
    const own = readFence(text).language === "mermaid" ? WORK_PER_DIAGRAM : WORK_PER_CODE_BLOCK;
    const work = before + own + text.length / CODE_PER_WORK;
    return { start, text, kind: "code", work, labels: [], links: new Map(), footnotes: [] };
  }
  const work = workOf(text);
  if (work === Infinity) return plainBlock(start, text, before);
  return { start, text, kind: "markdown", work: before + work, ...readDefinitions(text) };
}

function plainBlock(start: number, text: string, before: number): Block {
  const work = before + WORK_PER_BLOCK + text.length / 20;
  return { start, text, kind: "plain", work, labels: [], links: new Map(), footnotes: [] };
}

/** Infinity for what takes too long. */
function workOf(text: string): number {
  if (text.length > MAX_BLOCK_WORK) return Infinity;
  const containers = countContainers(text);
  if (containers === Infinity) return Infinity;
  const marks = text.match(MARK)?.length ?? 0;
  const formulas = text.match(FORMULA_MARK)?.length ?? 0;
  const work = WORK_PER_BLOCK + text.length + marks ** 2 / MARKS_PER_WORK + formulas * WORK_PER_FORMULA_MARK;
  if (work > MAX_BLOCK_WORK) return Infinity;
  const rendering = formulaWork(text);
  if (rendering > MAX_BLOCK_FORMULA_WORK) return Infinity;
  const elements = 2 * containers + (text.match(ELEMENT_MARK)?.length ?? 0);
  const links = text.match(LINK_MARK)?.length ?? 0;
  return work + rendering + elements * WORK_PER_ELEMENT_MARK + links * WORK_PER_LINK_MARK;
}

function formulaWork(text: string): number {
  let work = 0;
  for (const { tex } of extractFormulas(text).formulas) {
    if (!isSafeFormula(tex)) continue; // shown as it is written
    const cells = tex.split("&").length - 1;
    work += tex.length * WORK_PER_FORMULA_CHARACTER + cells * WORK_PER_FORMULA_CELL;
  }
  return work;
}

/** How many quotes and list items begin on the lines of the text; Infinity if a line is nested too deep. */
function countContainers(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at = endOfLine(text, at)) {
    CONTAINER.lastIndex = at;
    let depth = 0;
    while (CONTAINER.test(text)) if (++depth > MAX_NESTING) return Infinity;
    count += depth;
  }
  return count;
}

/** The content of a code block without its fences; the last fence may still be missing. */
export function readFence(text: string): Fence {
  const [, indent = "", mark = "", info = ""] = FENCE.exec(text) ?? [];
  const lines = text.trimEnd().split("\n").slice(1);
  if (lines.length > 0 && closesFence(lines.at(-1) ?? "", mark)) lines.pop();
  const stripped = indent === "" ? lines : lines.map((line) => line.replace(new RegExp(`^ {0,${indent.length}}`), ""));
  return { code: stripped.join("\n"), language: info.trim().split(/\s/, 1)[0] ?? "" };
}

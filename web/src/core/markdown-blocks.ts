// Splits Markdown into blocks that render independently: while text streams in, only the last block changes.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const LIST = /^ {0,3}([-*+]|\d{1,9}[.)])\s/;

export interface Block {
  readonly start: number;
  readonly text: string;
}

/** `previous` is an earlier result for a prefix of `text`; its finished blocks are reused. */
export function splitBlocks(text: string, previous: readonly Block[] = []): Block[] {
  const finished = finishedBlocks(text, previous);
  const last = finished.at(-1);
  return [...finished, ...splitFrom(text, last ? last.start + last.text.length : 0)];
}

function finishedBlocks(text: string, previous: readonly Block[]): readonly Block[] {
  // The last block may have grown, and with it the blank line that ends the one before.
  const finished = previous.slice(0, -2);
  const last = finished.at(-1);
  return last && text.startsWith(last.text, last.start) ? finished : [];
}

function splitFrom(text: string, from: number): Block[] {
  const blocks: Block[] = [];
  let start = from;
  let at = from;
  let fence: string | null = null;
  let math = false;
  let blank = false; // the previous line was empty
  let list = false; // in a list, a blank line does not end the block while items or indented lines follow
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline + 1;
    const line = text.slice(at, end);
    const empty = line.trim() === "";
    if (!fence && !math && !empty && blank && at > start && !(list && (/^\s/.test(line) || LIST.test(line)))) {
      blocks.push({ start, text: text.slice(start, at) });
      start = at;
      list = false;
    }
    if (at === start) list = LIST.test(line);
    fence = fenceAfter(fence, line, math);
    if (!fence && line.trim() === "$$") math = !math;
    blank = empty && !fence && !math;
    at = end;
  }
  if (start < text.length) blocks.push({ start, text: text.slice(start) });
  return blocks;
}

function fenceAfter(open: string | null, line: string, math: boolean): string | null {
  const mark = FENCE.exec(line)?.[1];
  if (!mark || math) return open;
  if (open === null) return mark;
  const closes = mark[0] === open[0] && mark.length >= open.length && line.trim() === mark;
  return closes ? null : open;
}

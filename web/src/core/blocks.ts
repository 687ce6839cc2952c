// Markdown cut into blocks that can be rendered by themselves: while text streams in, only the last one changes.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const LIST = /^ {0,3}([-*+]|\d{1,9}[.)])\s/;

export interface Block {
  readonly start: number;
  readonly text: string;
}

/** `before` is what an earlier call gave for a beginning of `text`: its finished blocks are taken over as they are. */
export function splitBlocks(text: string, before: readonly Block[] = []): Block[] {
  const kept = takeOver(text, before);
  const start = kept.length ? (kept[kept.length - 1] as Block).start + (kept[kept.length - 1] as Block).text.length : 0;
  return [...kept, ...cut(text, start)];
}

function takeOver(text: string, before: readonly Block[]): Block[] {
  // The last block may have grown, and with it the line that parted it from the one before.
  const finished = before.slice(0, -2);
  const last = finished.at(-1);
  return last && text.startsWith(last.text, last.start) ? finished : [];
}

function cut(text: string, from: number): Block[] {
  const blocks: Block[] = [];
  let start = from;
  let at = from;
  let fence: string | null = null;
  let math = false;
  let blank = false; // the line before was empty
  let list = false; // the block is a list: blank lines do not end it while items or indented lines follow
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

// Finds formulas in Markdown and puts placeholders in their place, so that the parser does not take their characters for
// Markdown. One pass: every search for a closing delimiter starts where the previous one ended.

export interface Formula {
  /** The text with its delimiters. */
  readonly source: string;
  readonly tex: string;
  readonly display: boolean;
}

const FENCE = /^[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})([^\n]*)/;
/** Environments that are formulas without delimiters. */
const ENVIRONMENT = /\\begin\{((?:align|alignat|equation|gather|aligned|gathered|split|cases|[bBpvV]?matrix)\*?)\}/y;
const PLACEHOLDER = /\uE000(\d+)\uE001/g;
const LINE_PREFIX = /[ \t>]*/y;
const BLANK_LINE = /\n[ \t]*\n/g;
/** Commands that define others, and the internal ones with an @: a few characters could expand to very many, and KaTeX
 * limits only the number of expansions. */
const DEFINES =
  /(?<!\\)(?:\\\\)*\\(?:[a-zA-Z]*@|(?:[gex]?def|let|futurelet|global|long|(?:new|renew|provide)command)(?![a-zA-Z]))/;
const MAX_LENGTH = 2_000;
/** What opens and closes a level of nesting; an escaped brace does neither. */
const NESTING = /\\(?:(left|begin)|(right|end))(?![a-zA-Z])|\\[\s\S]|([{}])/g;
/** Deeper formulas cost the browser's layout far more than their length, and have crashed it. */
const MAX_DEPTH = 24;

/** Whether the time to render a formula is proportional to its length, which is limited. */
export function isSafeFormula(tex: string): boolean {
  return tex.length <= MAX_LENGTH && !DEFINES.test(tex) && depthOf(tex) <= MAX_DEPTH;
}

function depthOf(tex: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [, opens, closes, brace] of tex.matchAll(NESTING)) {
    if (opens || brace === "{") deepest = Math.max(deepest, ++depth);
    else if (closes || brace === "}") depth--;
  }
  return deepest;
}

export function extractFormulas(markdown: string): { text: string; formulas: readonly Formula[] } {
  if (!/\$|\\[([]|\\begin\{/.test(markdown)) return { text: markdown, formulas: [] };
  const scanner = new FormulaScanner(markdown);
  scanner.scan();
  return { text: scanner.text, formulas: scanner.formulas };
}

/** Splits text at placeholders: strings, and the formulas that stand between them. */
export function splitFormulas(text: string, formulas: readonly Formula[]): (string | Formula)[] {
  const pieces: (string | Formula)[] = [];
  let end = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    const formula = formulas[Number(match[1])];
    if (!formula) continue;
    if (match.index > end) pieces.push(text.slice(end, match.index));
    pieces.push(formula);
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

/** Puts the sources of formulas back, where the parser found code or a URL. */
export function restoreFormulas(text: string, formulas: readonly Formula[]): string {
  return text.replace(PLACEHOLDER, (placeholder, n: string) => formulas[Number(n)]?.source ?? placeholder);
}

class FormulaScanner {
  text = "";
  readonly formulas: Formula[] = [];
  private at = 0;
  private copied = 0;
  private lineStart = 0;
  private readonly found = new Map<string, number>();

  constructor(private readonly source: string) {}

  scan(): void {
    const { source } = this;
    while (this.at < source.length) {
      if (this.at === 0 || source[this.at - 1] === "\n") if (this.skipFence()) continue;
      const char = source[this.at];
      if (char === "`") this.skipCode();
      else if (char === "\\") this.readBackslash();
      else if (char === "$") this.readDollar();
      else this.at++;
    }
    this.text += source.slice(this.copied);
  }

  private skipFence(): boolean {
    const newline = this.source.indexOf("\n", this.at);
    const match = FENCE.exec(this.source.slice(this.at, newline < 0 ? undefined : newline));
    const mark = match?.[1];
    if (!mark || (mark.startsWith("`") && match?.[2]?.includes("`"))) return false;
    let at = newline;
    while (at >= 0) {
      const end = this.source.indexOf("\n", at + 1);
      const line = this.source.slice(at + 1, end < 0 ? undefined : end).replace(/^[ \t>]*/, "");
      at = end;
      if (line.startsWith(mark) && line.replaceAll(mark[0] ?? "", "").trim() === "") break;
    }
    this.at = at < 0 ? this.source.length : at;
    return true;
  }

  private skipCode(): void {
    let end = this.at;
    while (this.source[end] === "`") end++;
    const mark = this.source.slice(this.at, end);
    let close = this.find(mark, end);
    while (close >= 0 && this.source[close + mark.length] === "`") {
      let next = close; // a longer run of backticks does not close it
      while (this.source[next] === "`") next++;
      close = this.find(mark, next);
    }
    this.at = close < 0 ? end : close + mark.length;
  }

  private readBackslash(): void {
    const next = this.source[this.at + 1];
    if (next === "b" && this.readEnvironment()) return;
    const close = next === "(" ? "\\)" : next === "[" ? "\\]" : null;
    const end = close === null ? -1 : this.find(close, this.at + 2);
    if (close === null || end < 0 || !this.take(2, end, close.length, next === "[")) this.at += 2;
  }

  private readEnvironment(): boolean {
    ENVIRONMENT.lastIndex = this.at;
    const name = ENVIRONMENT.exec(this.source)?.[1];
    if (name === undefined) return false;
    const close = `\\end{${name}}`;
    const end = this.find(close, this.at);
    return end >= 0 && this.take(0, end + close.length, 0, true);
  }

  private readDollar(): void {
    const { source, at } = this;
    if (source[at + 1] === "$") {
      let run = at;
      while (source[run] === "$") run++;
      const end = run - at === 2 ? this.find("$$", run) : -1;
      if (end < 0 || !this.take(2, end, 2, true)) this.at = run;
      return;
    }
    const end = this.find("$", at + 1);
    const inner = source.slice(at + 1, end < 0 ? at + 1 : end);
    // Prices and shell variables are not formulas: `$5 to $10`, `$HOME:$PATH`, `US$5`.
    const delimits = /^[^\s][^\n`]*$/.test(inner) && /[^\s\\]$/.test(inner) && !/[\w${]/.test(source[end + 1] ?? "");
    if (!delimits || /[\w$]/.test(source[at - 1] ?? "") || !this.take(1, end, 1, false)) this.at++;
  }

  /** The next occurrence, or -1. What was found is remembered until the scan is past it. */
  private find(mark: string, from: number): number {
    const known = this.found.get(mark);
    if (known !== undefined && (known < 0 || known >= from)) return known;
    const next = this.source.indexOf(mark, from);
    this.found.set(mark, next);
    return next;
  }

  private endOfParagraph(from: number): number {
    const known = this.found.get("\n\n");
    if (known !== undefined && known >= from) return known;
    BLANK_LINE.lastIndex = from;
    const next = BLANK_LINE.exec(this.source)?.index ?? this.source.length;
    this.found.set("\n\n", next);
    return next;
  }

  /** Replaces the formula between the current position and `end`, if that can be one. */
  private take(opening: number, end: number, closing: number, display: boolean): boolean {
    const { source, at } = this;
    const after = end + closing;
    const prefix = this.linePrefix();
    const ownLine = prefix.index + prefix.text.length === at;
    if (!(display && ownLine) && this.endOfParagraph(at) < end) return false;
    const inner = source.slice(at + opening, end);
    const bracket = source.startsWith("\\[", at); // perhaps an escaped bracket, as in \[1\]
    if (inner.trim() === "" || (bracket && (/^\d+$/.test(inner) || source[after] === "("))) return false;
    const tex = prefix.text.includes(">") ? inner.replace(/\n[ \t]*(?:>[ \t]?)+/g, "\n") : inner;
    this.text += `${source.slice(this.copied, at)}\uE000${this.formulas.length}\uE001`;
    this.formulas.push({ source: source.slice(at, after), tex: tex.trim(), display });
    this.copied = after;
    this.at = after;
    return true;
  }

  /** The white space and quote marks at the start of the current line. */
  private linePrefix(): { index: number; text: string } {
    for (let next = this.lineStart; next >= 0 && next <= this.at; ) {
      this.lineStart = next;
      const newline = this.source.indexOf("\n", next);
      next = newline < 0 ? -1 : newline + 1;
    }
    LINE_PREFIX.lastIndex = this.lineStart;
    return { index: this.lineStart, text: LINE_PREFIX.exec(this.source)?.[0] ?? "" };
  }
}

// Definitions that one block of a text gives and others refer to: reference links and footnotes.

const LINK = /^ {0,3}\[(?!\^)([^[\]]{1,200})\]:[ \t]*\S/;
const FOOTNOTE = /^ {0,3}\[\^([^[\]\s]{1,100})\]:[ \t]*/;
const LABEL = /\[([^[\]]{1,200})\]/g;
const MAX_DEFINITIONS = 500;

export interface Footnote {
  readonly label: string;
  readonly text: string;
  readonly labels: readonly string[];
}

export interface NumberedFootnote extends Footnote {
  readonly number: number;
}

interface BlockDefinitions {
  readonly labels: readonly string[];
  readonly links: ReadonlyMap<string, string>;
  readonly footnotes: readonly Footnote[];
}

/** Labels match without regard to case and the amount of white space. */
const normalize = (label: string): string => label.trim().replace(/\s+/g, " ").toLowerCase();

export function readDefinitions(text: string): BlockDefinitions {
  const links = new Map<string, string>();
  const footnotes: { label: string; lines: string[] }[] = [];
  if (text.includes("]:")) {
    for (const line of text.split("\n")) readLine(line, links, footnotes);
  }
  return {
    labels: readLabels(text),
    links,
    footnotes: footnotes.map(({ label, lines }) => {
      const body = lines.join("\n").trim();
      return { label, text: body, labels: readLabels(body) };
    }),
  };
}

function readLabels(text: string): string[] {
  return [...new Set(Array.from(text.matchAll(LABEL), ([, label = ""]) => normalize(label)))];
}

function readLine(line: string, links: Map<string, string>, footnotes: { label: string; lines: string[] }[]): void {
  const note = FOOTNOTE.exec(line);
  if (note) {
    footnotes.push({ label: normalize(note[1] ?? ""), lines: [line.slice(note[0].length)] });
    return;
  }
  const link = LINK.exec(line);
  if (link) links.set(normalize(link[1] ?? ""), line.trim());
  else footnotes.at(-1)?.lines.push(line.replace(/^ {1,4}/, ""));
}

/** The definitions of all blocks of a text. The first definition of a label counts. */
export class Definitions {
  readonly footnotes: readonly NumberedFootnote[];
  private readonly lines = new Map<string, string>();

  constructor(blocks: readonly BlockDefinitions[]) {
    const footnotes: NumberedFootnote[] = [];
    for (const block of blocks) {
      for (const [label, line] of block.links) this.add(label, line);
      for (const note of block.footnotes) {
        // The number is the content: the footnote itself is shown below the text.
        if (!this.add(`^${note.label}`, `[^${note.label}]: ${footnotes.length + 1}`)) continue;
        footnotes.push({ ...note, number: footnotes.length + 1 });
      }
    }
    this.footnotes = footnotes;
  }

  /** The definitions that a block with these labels needs, as Markdown to be appended to it. */
  neededBy(labels: readonly string[]): string {
    if (this.lines.size === 0) return "";
    return labels.flatMap((label) => this.lines.get(label) ?? []).join("\n\n");
  }

  private add(label: string, line: string): boolean {
    if (this.lines.has(label) || this.lines.size >= MAX_DEFINITIONS) return false;
    this.lines.set(label, line);
    return true;
  }
}

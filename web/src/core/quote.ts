// Quotes text in a message, as Markdown.

/** The text as a quotation, followed by an empty line for the answer to it. */
export function quoted(text: string): string {
  const lines = text
    .trim()
    .replace(/\r\n?/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .split("\n");
  return `${lines.map((line) => (line.trim() ? `> ${line.trimEnd()}` : ">")).join("\n")}\n\n`;
}

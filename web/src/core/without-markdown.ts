// Markdown as plain words, for excerpts and announcements: an approximation that leaves the words as they are.
// Its time is bounded by a small multiple of the length.

const RULES: readonly (readonly [RegExp, string])[] = [
  [/^ {0,3}(?:`{3,}|~{3,})[^\n]*$/gm, ""], // fences
  [/^ {0,3}#{1,6} +/gm, ""], // headings
  [/^ {0,3}(?:> ?)+/gm, ""], // quotes
  [/^[ \t]*(?:[-*+]|\d{1,9}[.)]) +(?:\[[ xX]\] +)?/gm, ""], // list items
  [/^(?=.{0,20}---)[ \t|:-]+$/gm, ""], // rules, and the lines below the heads of tables
  [/!?\[([^\][\n]{0,1000})\]\([^()\s]{0,2000}\)/g, "$1"], // links and images
  [/(\*{1,3}|_{2,3}|~~)(?=\S)([^*_~\n]{1,1000}?)(?<=\S)\1/g, "$2"], // emphasis
  [/`+([^`\n]{1,1000})`+/g, "$1"], // code
  [/^[ \t]*\|[ \t]*|[ \t]*\|[ \t]*$/gm, ""], // the edges of tables
  [/[ \t]*\|[ \t]*/g, ", "], // the cells of tables
];

export function withoutMarkdown(text: string): string {
  return RULES.reduce((left, [pattern, by]) => left.replace(pattern, by), text).trim();
}

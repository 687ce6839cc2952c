// How text files are shown: tables of separated values, and the language of code.

export interface Table {
  readonly rows: readonly (readonly string[])[];
  /** Whether rows or columns were left out. */
  readonly cut: boolean;
}

/** Reads comma- or tab-separated values: quoted fields may contain separators, line breaks and doubled quotes. */
export function parseTable(text: string, separator: string, maxRows: number, maxColumns: number): Table {
  const rows: string[][] = [];
  const field = new RegExp(`(?:"((?:[^"]|"")*)"|([^${separator}\\r\\n]*))(${separator}|\\r?\\n|\\r|$)`, "y");
  let row: string[] = [];
  let cut = false;
  while (field.lastIndex < text.length || row.length) {
    const found = field.exec(text);
    if (!found) return { rows, cut: true };
    const [whole, quoted, plain, end] = found;
    if (row.length < maxColumns) row.push(quoted === undefined ? (plain ?? "") : quoted.replaceAll('""', '"'));
    else cut = true;
    if (end === separator) continue;
    rows.push(row);
    row = [];
    if (rows.length === maxRows) return { rows, cut: cut || field.lastIndex < text.length };
    if (!whole) break;
  }
  return { rows, cut };
}

const LANGUAGES: Readonly<Record<string, string>> = {
  bash: "bash",
  c: "c",
  cc: "cpp",
  cpp: "cpp",
  cs: "csharp",
  css: "css",
  diff: "diff",
  go: "go",
  h: "c",
  hpp: "cpp",
  html: "xml",
  ini: "ini",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "javascript",
  kt: "kotlin",
  less: "less",
  lua: "lua",
  mjs: "javascript",
  patch: "diff",
  php: "php",
  pl: "perl",
  py: "python",
  r: "r",
  rb: "ruby",
  rs: "rust",
  scss: "scss",
  sh: "bash",
  sql: "sql",
  svg: "xml",
  swift: "swift",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
};

/** The language to highlight a file in, by its name; empty if it is not known. */
export function languageOf(name: string): string {
  return LANGUAGES[name.slice(name.lastIndexOf(".") + 1).toLowerCase()] ?? (name === "Makefile" ? "makefile" : "");
}

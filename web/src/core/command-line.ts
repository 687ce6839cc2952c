// Command lines as people type them, and as the server stores them.

/** Splits a command line into words; quotes keep words together. */
export function splitCommand(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

/** The inverse of `splitCommand`. */
export function joinCommand(words: readonly string[]): string {
  return words
    .map((word) => (/^[^\s"']+$/.test(word) ? word : word.includes('"') ? `'${word}'` : `"${word}"`))
    .join(" ");
}

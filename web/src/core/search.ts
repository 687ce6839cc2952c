// The words of a search query, and where they are in a text.

export const searchWords = (query: string): string[] => query.trim().split(/\s+/).filter(Boolean);

/** Matches any of the words, or of the phrases, however they are spaced; null without words. */
export function wordPattern(words: readonly string[]): RegExp | null {
  const escapeWord = (word: string) => word.replace(/[^\p{L}\p{N}]/gu, "\\$&");
  const escaped = words.map((phrase) => searchWords(phrase).map(escapeWord).join("\\s+"));
  return escaped.length ? new RegExp(`(${escaped.join("|")})`, "gi") : null;
}

/** How much of an excerpt may precede the first match, so that two short lines show it. */
const LEAD = 24;

/** Cuts the beginning of an excerpt off, at a word, if the first match would be out of sight. */
export function startNearMatch(excerpt: string, words: readonly string[]): string {
  const at = wordPattern(words)?.exec(excerpt)?.index ?? 0;
  if (at <= LEAD) return excerpt;
  const space = excerpt.indexOf(" ", at - LEAD);
  return `…${excerpt.slice(space >= 0 && space < at ? space + 1 : at)}`;
}

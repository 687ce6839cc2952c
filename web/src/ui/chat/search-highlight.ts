// Highlights the words of a search in a message, where the browser can highlight without changing the page's elements.

import { wordPattern } from "../../core/search.ts";

const NAME = "search";
const MAX_RANGES = 200;

/** Highlights the words in the element. Returns the element that contains the first of them. */
export function highlightWords(element: Element, words: readonly string[]): Element | null {
  clearHighlight();
  const pattern = wordPattern(words);
  if (!pattern) return null;
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < MAX_RANGES) {
    for (const { index, 0: found } of texts.currentNode.textContent?.matchAll(pattern) ?? []) {
      const range = document.createRange();
      range.setStart(texts.currentNode, index);
      range.setEnd(texts.currentNode, index + found.length);
      ranges.push(range);
    }
  }
  if ("highlights" in CSS) CSS.highlights.set(NAME, new Highlight(...ranges));
  return ranges[0]?.startContainer.parentElement ?? null;
}

export function clearHighlight(): void {
  if ("highlights" in CSS) CSS.highlights.delete(NAME);
}

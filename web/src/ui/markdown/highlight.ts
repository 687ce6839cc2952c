// Highlights code. Some grammars take quadratic time for some code, so slow calls use up a budget; after that, code stays
// plain.

import type { Root } from "hast";
import { common, createLowlight } from "lowlight";

export type Highlight = (code: string, language: string) => Root | null;

const SLOW_MS = 50;
const MAX_SLOW_MS = 3_000;

export function createHighlight(now: () => number): Highlight {
  const lowlight = createLowlight(common);
  let spent = 0;
  return (code, language) => {
    if (spent > MAX_SLOW_MS || !lowlight.registered(language)) return null;
    const start = now();
    const tree = lowlight.highlight(language, code);
    const took = now() - start;
    if (took > SLOW_MS) spent += took;
    return tree;
  };
}

export const highlight = createHighlight(() => performance.now());

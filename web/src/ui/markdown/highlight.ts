// Highlights code. Some grammars take quadratic time for some code, so slow calls use up a budget; after that, code stays
// plain. A budget cannot end a call, so grammars that can take even longer are left out.

import type { Root } from "hast";
import { common, createLowlight } from "lowlight";
import { TimeBudget } from "./time-budget.ts";

export type Highlight = (code: string, language: string) => Root | null;

/** Markdown takes cubic time for repeated brackets: ten seconds for 10,000 characters. */
const { markdown: _, ...GRAMMARS } = common;

/** Several grammars take quadratic time for a long line. */
const MAX_LINE = 1_000;

export function createHighlight(now: () => number): Highlight {
  const lowlight = createLowlight(GRAMMARS);
  const budget = new TimeBudget(now);
  return (code, language) =>
    lowlight.registered(language) && code.split("\n").every((line) => line.length <= MAX_LINE)
      ? budget.run(() => lowlight.highlight(language, code))
      : null;
}

export const highlight = createHighlight(() => performance.now());

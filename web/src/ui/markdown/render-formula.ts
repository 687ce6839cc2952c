import katex from "katex";
import { isSafeFormula } from "../../core/formulas.ts";
import { TimeBudget } from "./time-budget.ts";

/** `source` is the formula with its delimiters. */
export type RenderFormula = (tex: string, source: string, box: HTMLElement, display: boolean) => void;

/** Renders through the DOM because the content security policy forbids inline styles in HTML. A formula that is invalid
 * or may take long is shown as it is written. */
export function createRenderFormula(now: () => number): RenderFormula {
  const budget = new TimeBudget(now);
  return (tex, source, box, displayMode) => {
    const options = { displayMode, strict: false, trust: false, maxExpand: 200, maxSize: 20 };
    const render = () => {
      katex.render(tex, box, options);
      return true;
    };
    try {
      if (isSafeFormula(tex) && budget.run(render)) return;
    } catch {} // not a valid formula
    box.textContent = source;
  };
}

export const renderFormula = createRenderFormula(() => performance.now());

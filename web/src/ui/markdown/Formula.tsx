// A formula; loaded with KaTeX and its fonts by the first text that has one. KaTeX renders through the DOM because the
// content security policy forbids inline styles in HTML.

import "katex/dist/katex.min.css";
import katex from "katex";
import { useLayoutEffect, useRef } from "react";
import styles from "./markdown.module.css";

const MAX_LENGTH = 5_000;

interface Props {
  tex: string;
  /** With its delimiters: shown if the formula is not valid. */
  source: string;
  display: boolean;
}

export default function Formula({ tex, source, display }: Props) {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (!box.current) return;
    try {
      if (tex.length > MAX_LENGTH) throw new RangeError("The formula is too long.");
      katex.render(tex, box.current, {
        displayMode: display,
        strict: false,
        trust: false,
        maxExpand: 200,
        maxSize: 20,
      });
    } catch {
      box.current.textContent = source; // not a valid formula
    }
  }, [tex, source, display]);
  return <span ref={box} dir="ltr" className={display ? styles.formulaBlock : undefined} />;
}

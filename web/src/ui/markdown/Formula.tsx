// A formula; loaded with KaTeX and its fonts by the first text that has one.

import "katex/dist/katex.min.css";
import { useLayoutEffect, useRef } from "react";
import styles from "./markdown.module.css";
import { renderFormula } from "./render-formula.ts";

interface Props {
  tex: string;
  /** With its delimiters: shown if the formula is not valid. */
  source: string;
  display: boolean;
}

export default function Formula({ tex, source, display }: Props) {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (box.current) renderFormula(tex, source, box.current, display);
  }, [tex, source, display]);
  return <span ref={box} dir="ltr" className={display ? styles.formulaBlock : undefined} />;
}

// A formula; loaded with KaTeX and its fonts by the first text that has one.

import "katex/dist/katex.min.css";
import { useLayoutEffect, useRef } from "react";
import styles from "./markdown.module.css";
import { renderFormula } from "./render-formula.ts";

export default function Formula({ tex, display }: { tex: string; display: boolean }) {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (box.current) renderFormula(tex, box.current, display);
  }, [tex, display]);
  return <span ref={box} dir="ltr" className={display ? styles.formulaBlock : undefined} />;
}

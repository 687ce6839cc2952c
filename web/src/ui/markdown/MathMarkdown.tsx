// Markdown with formulas; loaded with KaTeX and its fonts by the first text that has one. KaTeX renders through the DOM
// because the content security policy forbids inline styles in HTML.

import "katex/dist/katex.min.css";
import katex from "katex";
import { type ComponentProps, useLayoutEffect, useRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { Code } from "./CodeBlock.tsx";
import { COMPONENTS, keepUrl } from "./Markdown.tsx";
import styles from "./markdown.module.css";

const REMARK = [remarkGfm, remarkMath];

function Formula({ tex, display }: { tex: string; display: boolean }) {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (!box.current) return;
    try {
      katex.render(tex, box.current, {
        displayMode: display,
        strict: false,
        trust: false,
        maxExpand: 200,
        maxSize: 20,
      });
    } catch {
      box.current.textContent = tex; // not a valid formula
    }
  }, [tex, display]);
  return <span ref={box} className={display ? styles.formulaBlock : undefined} />;
}

function MathOrCode(props: ComponentProps<"code"> & { node?: unknown }) {
  const names = props.className ?? "";
  if (!names.includes("math-")) return <Code {...props} />;
  return <Formula tex={String(props.children ?? "")} display={names.includes("math-display")} />;
}

const WITH_MATH: Components = { ...COMPONENTS, code: MathOrCode };

/** Converts \( \) and \[ \], which models also write, to dollar signs. */
function toDollars(text: string): string {
  if (text.includes("```")) return text;
  return text
    .replace(/\\\[([\s\S]*?)\\\]/g, (_, formula: string) => `\n$$\n${formula.trim()}\n$$\n`)
    .replace(/\\\((.*?)\\\)/g, (_, formula: string) => `$${formula}$`);
}

export default function MathMarkdown({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={REMARK} components={WITH_MATH} urlTransform={keepUrl}>
      {toDollars(text)}
    </ReactMarkdown>
  );
}

// Markdown with formulas. KaTeX and its fonts are loaded by the first text that has one. It draws into the page through
// the object model: the policy forbids styles that come as text.

import "katex/dist/katex.min.css";
import katex from "katex";
import { type ComponentProps, useLayoutEffect, useRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { Code } from "./Code.tsx";
import { COMPONENTS, keepUrl } from "./Markdown.tsx";

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
      box.current.textContent = tex; // no formula after all
    }
  }, [tex, display]);
  return <span ref={box} className={display ? "formula-block" : "formula"} />;
}

function MathOrCode(props: ComponentProps<"code"> & { node?: unknown }) {
  const names = props.className ?? "";
  if (!names.includes("math-")) return <Code {...props} />;
  return <Formula tex={String(props.children ?? "")} display={names.includes("math-display")} />;
}

const WITH_MATH: Components = { ...COMPONENTS, code: MathOrCode };

/** Models also write \( \) and \[ \]. */
function dollars(text: string): string {
  if (text.includes("```")) return text;
  return text
    .replace(/\\\[([\s\S]*?)\\\]/g, (_, formula: string) => `\n$$\n${formula.trim()}\n$$\n`)
    .replace(/\\\((.*?)\\\)/g, (_, formula: string) => `$${formula}$`);
}

export default function WithMath({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={REMARK} components={WITH_MATH} urlTransform={keepUrl}>
      {dollars(text)}
    </ReactMarkdown>
  );
}

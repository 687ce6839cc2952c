// Inline code, and code blocks with their language, a copy button and highlighting that is loaded on demand.

import type { RootContent } from "hast";
import { type ComponentProps, Fragment, type ReactNode, useEffect, useState } from "react";
import { loadChunk } from "../lazy-load.ts";
import { CopyButton } from "../widgets/buttons.tsx";
import { Diagram } from "./Diagram.tsx";
import type { Highlight } from "./highlight.ts";
import styles from "./markdown.module.css";

let loadedHighlight: Highlight | null = null;
const MAX_HIGHLIGHTED = 15_000;

export function Code({ className, children, node }: ComponentProps<"code"> & { node?: unknown }) {
  const text = String(children ?? "");
  const language = /language-([\w+#.-]+)/.exec(className ?? "")?.[1] ?? "";
  const block = language !== "" || text.includes("\n") || spansLines(node);
  if (block) return <FencedCode code={text.replace(/\n$/, "")} language={language} />;
  return <code dir="auto">{children}</code>;
}

export function FencedCode({ code, language }: { code: string; language: string }) {
  return language === "mermaid" ? <Diagram source={code} /> : <CodeBlock code={code} language={language} />;
}

/** Tells a block of one line from inline code. */
function spansLines(node: unknown): boolean {
  const position = (node as { position?: { start: { line: number }; end: { line: number } } } | undefined)?.position;
  return position !== undefined && position.end.line > position.start.line;
}

function CodeBlock({ code, language }: { code: string; language: string }) {
  const highlight = useHighlight(language !== "" && code.length < MAX_HIGHLIGHTED);
  const tree = highlight ? highlight(code, language) : null;
  return (
    <figure className={styles.code} dir="ltr">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={() => code} name="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre tabIndex={0}>
        <code>{tree ? tree.children.map(renderNode) : code}</code>
      </pre>
    </figure>
  );
}

function useHighlight(enabled: boolean): Highlight | null {
  const [highlight, setHighlight] = useState<Highlight | null>(() => loadedHighlight);
  useEffect(() => {
    if (!enabled || highlight) return;
    let mounted = true;
    loadChunk(() => import("./highlight.ts")).then(
      (module) => {
        loadedHighlight = module.highlight;
        if (mounted) setHighlight(() => module.highlight);
      },
      () => undefined, // the code stays plain
    );
    return () => {
      mounted = false;
    };
  }, [enabled, highlight]);
  return enabled ? highlight : null;
}

function renderNode(node: RootContent, index: number): ReactNode {
  if (node.type === "text") return <Fragment key={index}>{node.value}</Fragment>;
  if (node.type !== "element") return null;
  const names = node.properties.className;
  return (
    <span key={index} className={Array.isArray(names) ? names.join(" ") : ""}>
      {node.children.map(renderNode)}
    </span>
  );
}

// Code: a word in a sentence, or a block with its language, a copy button and colours that come when they are loaded.

import type { Root, RootContent } from "hast";
import { type ComponentProps, Fragment, type ReactNode, useEffect, useState } from "react";
import { Diagram } from "./Diagram.tsx";
import { loaded as loadedPart } from "./lazily.ts";
import { CopyButton } from "./widgets.tsx";

type Colour = (code: string, language: string) => Root | null;
let loaded: Colour | null = null;
const LARGEST = 40_000;

export function Code({ className, children, node }: ComponentProps<"code"> & { node?: unknown }) {
  const text = String(children ?? "");
  const language = /language-([\w+#.-]+)/.exec(className ?? "")?.[1] ?? "";
  const block = language !== "" || text.includes("\n") || spansLines(node);
  if (language === "mermaid") return <Diagram source={text.replace(/\n$/, "")} />;
  return block ? <CodeBlock code={text.replace(/\n$/, "")} language={language} /> : <code>{children}</code>;
}

/** An indented or fenced block of one line looks like a word otherwise. */
function spansLines(node: unknown): boolean {
  const position = (node as { position?: { start: { line: number }; end: { line: number } } } | undefined)?.position;
  return position !== undefined && position.end.line > position.start.line;
}

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const colour = useColour(language !== "" && code.length < LARGEST);
  const tree = colour ? colour(code, language) : null;
  return (
    <figure className="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={() => code} name="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <pre tabIndex={0}>
        <code>{tree ? tree.children.map(nodeView) : code}</code>
      </pre>
    </figure>
  );
}

function useColour(wanted: boolean): Colour | null {
  const [colour, setColour] = useState<Colour | null>(() => loaded);
  useEffect(() => {
    if (!wanted || colour) return;
    let here = true;
    void loadedPart(() => import("./highlight.ts")).then(({ highlight }) => {
      loaded = highlight;
      if (here) setColour(() => highlight);
    });
    return () => {
      here = false;
    };
  }, [wanted, colour]);
  return wanted ? colour : null;
}

function nodeView(node: RootContent, at: number): ReactNode {
  if (node.type === "text") return <Fragment key={at}>{node.value}</Fragment>;
  if (node.type !== "element") return null;
  const names = node.properties.className;
  return (
    <span key={at} className={Array.isArray(names) ? names.join(" ") : ""}>
      {node.children.map(nodeView)}
    </span>
  );
}

// Renders untrusted Markdown: of HTML only the plain tags in `extend-tree.ts`, no remote content, and links show where
// they lead.

import { type ComponentProps, memo, Suspense, useContext } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { extractFormulas } from "../../core/formulas.ts";
import { readFence } from "../../core/markdown-blocks.ts";
import { lazyComponent } from "../lazy-load.ts";
import textStyles from "../widgets/text.module.css";
import { Code, FencedCode } from "./CodeBlock.tsx";
import { extendTree } from "./extend-tree.ts";
import { FootnotesId, showFootnote } from "./footnotes.ts";
import styles from "./markdown.module.css";

const Formula = lazyComponent(() => import("./Formula.tsx"));
const SAFE_LINK = /^(https?:|mailto:)/i;
const INLINE_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

function hostOf(href: string): string {
  try {
    return new URL(href).host || href;
  } catch {
    return href;
  }
}

function Anchor({ href, children }: ComponentProps<"a">) {
  const footnote = /^#footnote-(\d+)$/.exec(href ?? "")?.[1];
  if (footnote) return <FootnoteLink number={footnote} />;
  if (!href || !SAFE_LINK.test(href)) return <span className={styles.deadLink}>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href} className={styles.externalLink}>
      {children}
    </a>
  );
}

function FootnoteLink({ number }: { number: string }) {
  const id = `${useContext(FootnotesId)}-${number}`;
  return (
    <sup>
      <a
        href={`#${id}`}
        aria-label={`Footnote ${number}`}
        onClick={(event) => {
          event.preventDefault();
          showFootnote(id);
        }}
      >
        {number}
      </a>
    </sup>
  );
}

/** A remote image becomes a link: loading it would tell its host that it was viewed. */
function Image({ src, alt }: ComponentProps<"img">) {
  if (typeof src !== "string" || !src) return <span className={styles.deadLink}>{alt}</span>;
  if (INLINE_IMAGE.test(src)) return <img src={src} alt={alt ?? ""} />;
  if (!SAFE_LINK.test(src)) return <span className={styles.deadLink}>{alt}</span>;
  return <Anchor href={src}>{`${alt || "Image"} (${hostOf(src)})`}</Anchor>;
}

/** A table that scrolls on its own when it is wide. */
function Table({ children, dir }: ComponentProps<"table">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className={styles.table} aria-label="Table" tabIndex={0}>
      <table dir={dir}>{children}</table>
    </section>
  );
}

interface FormulaData {
  readonly "data-tex"?: string;
  /** The opening delimiter; a dollar sign by default. */
  readonly "data-delimiter"?: string;
}

/** By the opening delimiter; an environment (`\\begin{…}`) is part of its formula. */
const CLOSING: Readonly<Record<string, string>> = { $: "$", $$: "$$", "\\(": "\\)", "\\[": "\\]" };

function FormulaSpan(props: ComponentProps<"span"> & FormulaData) {
  const tex = props["data-tex"] ?? "";
  const opening = props["data-delimiter"] ?? "$";
  const closing = CLOSING[opening];
  return (
    <Suspense fallback={<code>{tex}</code>}>
      <Formula
        tex={tex}
        source={closing === undefined ? tex : opening + tex + closing}
        display={opening !== "$" && opening !== "\\("}
      />
    </Suspense>
  );
}

/** The title of the chat is the page's heading of level 1: those of an answer are below it. */
const COMPONENTS: Components = {
  h1: ({ children }) => <h2 data-level="1">{children}</h2>,
  h2: ({ children }) => <h3 data-level="2">{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  h4: ({ children }) => <h5>{children}</h5>,
  h5: ({ children }) => <h6>{children}</h6>,
  a: Anchor,
  img: Image,
  table: Table,
  pre: ({ children }) => <>{children}</>,
  code: Code,
  span: FormulaSpan,
  input: ({ checked }) => <input type="checkbox" checked={checked === true} readOnly disabled aria-label="Task" />,
};

/** The components above decide which URLs are safe. */
const keepUrl = (url: string): string => url;

interface Props {
  text: string;
  kind: "markdown" | "code" | "plain";
  /** Definitions from other blocks, as Markdown. */
  definitions: string;
  growing: boolean;
}

export default memo(function Markdown({ text, kind, definitions, growing }: Props) {
  if (kind === "code") return <FencedCode {...readFence(text)} />;
  if (kind === "plain") {
    return (
      <p className={textStyles.plain} dir="auto">
        {text}
      </p>
    );
  }
  const { text: source, formulas } = extractFormulas(growing ? remend(text) : text);
  return (
    <ReactMarkdown
      remarkPlugins={[remarkGfm, [extendTree, { formulas }]]}
      components={COMPONENTS}
      urlTransform={keepUrl}
    >
      {definitions ? `${source}\n\n${definitions}` : source}
    </ReactMarkdown>
  );
});

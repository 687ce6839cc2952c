// Renders untrusted Markdown: no raw HTML, no remote content, and links show where they lead.

import { type ComponentProps, memo, Suspense } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { lazyComponent } from "../lazy-load.ts";
import textStyles from "../widgets/text.module.css";
import { Code } from "./CodeBlock.tsx";
import styles from "./markdown.module.css";

const MathMarkdown = lazyComponent(() => import("./MathMarkdown.tsx"));
const GFM = [remarkGfm];
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
  if (!href || !SAFE_LINK.test(href)) return <span className={styles.deadLink}>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href} className={styles.externalLink}>
      {children}
    </a>
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
function Table({ children }: ComponentProps<"table">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className={styles.table} aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </section>
  );
}

export const COMPONENTS: Components = {
  a: Anchor,
  img: Image,
  table: Table,
  pre: ({ children }) => <>{children}</>,
  code: Code,
  input: ({ checked }) => <input type="checkbox" checked={checked === true} readOnly disabled aria-label="Task" />,
};

/** The components above decide which URLs are safe. */
export const keepUrl = (url: string): string => url;

interface Props {
  text: string;
  growing: boolean;
}

export default memo(function Markdown({ text, growing }: Props) {
  const source = growing ? remend(text) : text;
  if (/\$\$|\$[^\s$][^$\n]*\$|\\\(|\\\[/.test(source)) {
    return (
      <Suspense fallback={<p className={textStyles.plain}>{text}</p>}>
        <MathMarkdown text={source} />
      </Suspense>
    );
  }
  return (
    <ReactMarkdown remarkPlugins={GFM} components={COMPONENTS} urlTransform={keepUrl}>
      {source}
    </ReactMarkdown>
  );
});

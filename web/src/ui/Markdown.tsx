// Markdown that nobody has to trust: no raw HTML, no remote content, links that say where they lead.

import { type ComponentProps, memo, Suspense } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { Code } from "./Code.tsx";
import { lazily } from "./lazily.ts";

const WithMath = lazily(() => import("./Math.tsx"));
const GFM = [remarkGfm];
const SAFE_LINK = /^(https?:|mailto:)/i;
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

function hostOf(href: string): string {
  try {
    return new URL(href).host || href;
  } catch {
    return href;
  }
}

function Anchor({ href, children }: ComponentProps<"a">) {
  if (!href || !SAFE_LINK.test(href)) return <span className="dead-link">{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href} className="out">
      {children}
    </a>
  );
}

/** A picture from elsewhere would tell its host that it was looked at: it is a link instead. */
function Picture({ src, alt }: ComponentProps<"img">) {
  if (typeof src !== "string" || !src) return <span className="dead-link">{alt}</span>;
  if (OWN_IMAGE.test(src)) return <img src={src} alt={alt ?? ""} />;
  if (!SAFE_LINK.test(src)) return <span className="dead-link">{alt}</span>;
  return <Anchor href={src}>{`${alt || "Picture"} (${hostOf(src)})`}</Anchor>;
}

/** A wide table scrolls by itself; a keyboard can reach it to do so. */
function Table({ children }: ComponentProps<"table">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
    <section className="table" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </section>
  );
}

export const COMPONENTS: Components = {
  a: Anchor,
  img: Picture,
  table: Table,
  pre: ({ children }) => <>{children}</>,
  code: Code,
  input: ({ checked }) => <input type="checkbox" checked={checked === true} readOnly disabled aria-label="Task" />,
};

export const keepUrl = (url: string): string => url;

interface Props {
  text: string;
  growing: boolean;
}

export default memo(function Markdown({ text, growing }: Props) {
  const whole = growing ? remend(text) : text;
  if (/\$\$|\$[^\s$][^$\n]*\$|\\\(|\\\[/.test(whole)) {
    return (
      <Suspense fallback={<p className="plain">{text}</p>}>
        <WithMath text={whole} />
      </Suspense>
    );
  }
  return (
    <ReactMarkdown remarkPlugins={GFM} components={COMPONENTS} urlTransform={keepUrl}>
      {whole}
    </ReactMarkdown>
  );
});

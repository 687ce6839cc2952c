// A text part as Markdown, rendered block by block. Until the renderer is loaded, the text is shown as it is.

import { memo, type ReactNode, Suspense, useEffect, useId, useMemo, useRef, useState } from "react";
import { pauseBetweenRenders, splitBlocks } from "../../core/markdown-blocks.ts";
import { Definitions } from "../../core/markdown-definitions.ts";
import { ErrorBoundary } from "../ErrorBoundary.tsx";
import { lazyComponent } from "../lazy-load.ts";
import textStyles from "../widgets/text.module.css";
import { FootnotesId } from "./footnotes.ts";
import styles from "./markdown.module.css";

const Markdown = lazyComponent(() => import("./Markdown.tsx"));

export const MarkdownText = memo(function MarkdownText({ text, growing }: { text: string; growing: boolean }) {
  const blocks = useBlocks(text, growing);
  const definitions = useMemo(() => new Definitions(blocks), [blocks]);
  const id = useId();
  return (
    <FootnotesId value={id}>
      <div className={styles.markdown} data-part="text">
        {blocks.map((block, n) => (
          <PlainUntilLoaded key={block.start} text={block.text}>
            <Markdown
              text={block.text}
              kind={block.kind}
              definitions={definitions.neededBy(block.labels)}
              growing={growing && n === blocks.length - 1}
            />
          </PlainUntilLoaded>
        ))}
        {definitions.footnotes.length > 0 && <Footnotes definitions={definitions} id={id} />}
      </div>
    </FootnotesId>
  );
});

function Footnotes({ definitions, id }: { definitions: Definitions; id: string }) {
  return (
    <section className={styles.footnotes} aria-label="Footnotes">
      <ol>
        {definitions.footnotes.map((note) => (
          <li key={note.number} id={`${id}-${note.number}`} tabIndex={-1}>
            <PlainUntilLoaded text={note.text}>
              <Markdown
                text={note.text}
                kind="markdown"
                definitions={definitions.neededBy(note.labels)}
                growing={false}
              />
            </PlainUntilLoaded>
          </li>
        ))}
      </ol>
    </section>
  );
}

function PlainUntilLoaded({ text, children }: { text: string; children: ReactNode }) {
  const plain = (
    <p className={textStyles.plain} dir="auto" data-unrendered>
      {text}
    </p>
  );
  return (
    <ErrorBoundary fallback={plain}>
      <Suspense fallback={plain}>{children}</Suspense>
    </ErrorBoundary>
  );
}

/** Splits incrementally: finished blocks of the previous text are reused. A growing text whose last block takes long to
 * render is shown with a delay. */
function useBlocks(text: string, growing: boolean) {
  const [split, setSplit] = useState(() => ({ text, blocks: splitBlocks(text) }));
  const latest = useRef(text);
  const late = split.text !== text;
  const pause = growing ? pauseBetweenRenders(split.blocks) : 0;
  useEffect(() => {
    latest.current = text;
  }, [text]);
  useEffect(() => {
    if (!late || pause === 0) return;
    const next = () => setSplit({ text: latest.current, blocks: splitBlocks(latest.current, split.blocks) });
    const timer = setTimeout(next, pause);
    return () => clearTimeout(timer);
  }, [late, pause, split]);
  if (!late || pause > 0) return split.blocks;
  const blocks = splitBlocks(text, split.blocks);
  setSplit({ text, blocks });
  return blocks;
}

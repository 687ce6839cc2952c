// A text part as Markdown, rendered block by block. Until the renderer is loaded, the text is shown as it is.

import { memo, Suspense, useState } from "react";
import { splitBlocks } from "../../core/markdown-blocks.ts";
import { ErrorBoundary } from "../ErrorBoundary.tsx";
import { lazyComponent } from "../lazy-load.ts";
import textStyles from "../widgets/text.module.css";
import styles from "./markdown.module.css";

const Markdown = lazyComponent(() => import("./Markdown.tsx"));

export const MarkdownText = memo(function MarkdownText({ text, growing }: { text: string; growing: boolean }) {
  const blocks = useBlocks(text);
  return (
    <div className={styles.markdown} data-part="text">
      {blocks.map((block, n) => {
        const plain = (
          <p className={textStyles.plain} data-unrendered>
            {block.text}
          </p>
        );
        return (
          <ErrorBoundary key={block.start} fallback={plain}>
            <Suspense fallback={plain}>
              <Markdown text={block.text} growing={growing && n === blocks.length - 1} />
            </Suspense>
          </ErrorBoundary>
        );
      })}
    </div>
  );
});

/** Splits incrementally: finished blocks of the previous text are reused. */
function useBlocks(text: string) {
  const [split, setSplit] = useState(() => ({ text, blocks: splitBlocks(text) }));
  if (split.text === text) return split.blocks;
  const blocks = splitBlocks(text, split.blocks);
  setSplit({ text, blocks });
  return blocks;
}

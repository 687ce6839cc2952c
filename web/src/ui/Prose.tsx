// A text part. Its Markdown renderer is loaded when it is first needed; until then the text is shown as it is.

import { memo, Suspense, useRef } from "react";
import { type Block, splitBlocks } from "../core/blocks.ts";
import { lazily } from "./lazily.ts";

const Markdown = lazily(() => import("./Markdown.tsx"));

export const Prose = memo(function Prose({ text, growing }: { text: string; growing: boolean }) {
  const blocks = useRef<Block[]>([]);
  blocks.current = splitBlocks(text, blocks.current);
  const last = blocks.current.length - 1;
  return (
    <div className={growing ? "prose growing" : "prose"}>
      {blocks.current.map((block, n) => (
        <Suspense key={block.start} fallback={<p className="plain">{block.text}</p>}>
          <Markdown text={block.text} growing={growing && n === last} />
        </Suspense>
      ))}
    </div>
  );
});

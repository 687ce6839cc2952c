// A diagram, drawn in a frame of its own; its source until it is there, and when it cannot be drawn.

import { useEffect, useRef, useState } from "react";
import { CopyButton } from "./widgets.tsx";

const PAUSE = 300;
const TALLEST = 900;

interface Word {
  readonly ready?: true;
  readonly height?: number;
  readonly failed?: true;
}

export function Diagram({ source }: { source: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [ready, setReady] = useState(false);
  const [height, setHeight] = useState<number | null>(null);
  const [plain, setPlain] = useState(false);
  useEffect(() => {
    const hear = (event: MessageEvent<Word>) => {
      if (event.source !== frame.current?.contentWindow) return;
      if (event.data.ready) setReady(true);
      if (event.data.failed) setHeight(null);
      if (typeof event.data.height === "number") setHeight(Math.min(event.data.height, TALLEST));
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, []);
  useEffect(() => {
    if (!ready) return;
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    const draw = () => frame.current?.contentWindow?.postMessage({ source, dark }, location.origin);
    const timer = setTimeout(draw, PAUSE); // while it is still being written it changes with every word
    return () => clearTimeout(timer);
  }, [ready, source]);
  const drawn = height !== null && !plain;
  return (
    <figure className="code diagram">
      <figcaption>
        <span>mermaid</span>
        <span>
          {height !== null && (
            <button type="button" className="button small" onClick={() => setPlain(!plain)}>
              {plain ? "Diagram" : "Source"}
            </button>
          )}
          <CopyButton text={() => source} name="Copy code" />
        </span>
      </figcaption>
      <iframe
        ref={frame}
        title="Diagram"
        src="/static/app/diagram.html"
        className={drawn ? "" : "waiting"}
        style={drawn ? { height } : {}}
        aria-hidden={!drawn}
        tabIndex={-1}
      />
      {!drawn && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
        <pre tabIndex={0}>
          <code>{source}</code>
        </pre>
      )}
    </figure>
  );
}

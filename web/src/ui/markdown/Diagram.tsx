// A Mermaid diagram, rendered in an iframe. Shows the source until it is rendered, and if it cannot be.

import { useEffect, useRef, useState } from "react";
import { useDarkTheme } from "../theme.ts";
import { Button, CopyButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import styles from "./markdown.module.css";

/** While a diagram streams in, it is rendered after this pause. */
const RENDER_DELAY_MS = 300;
const MAX_HEIGHT = 900;

interface FrameMessage {
  readonly ready?: true;
  readonly height?: number;
  readonly failed?: true;
}

export function Diagram({ source }: { source: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [ready, setReady] = useState(false);
  const [height, setHeight] = useState<number | null>(null);
  const [showSource, setShowSource] = useState(false);
  useEffect(() => {
    const onMessage = (event: MessageEvent<FrameMessage>) => {
      if (event.source !== frame.current?.contentWindow) return;
      if (event.data.ready) setReady(true);
      if (event.data.failed) setHeight(null);
      if (typeof event.data.height === "number") setHeight(Math.min(event.data.height, MAX_HEIGHT));
    };
    addEventListener("message", onMessage);
    return () => removeEventListener("message", onMessage);
  }, []);
  const dark = useDarkTheme();
  useEffect(() => {
    if (!ready) return;
    // A sandboxed frame has no origin that could be named as the target.
    const render = () => frame.current?.contentWindow?.postMessage({ source, dark }, "*");
    const timer = setTimeout(render, RENDER_DELAY_MS);
    return () => clearTimeout(timer);
  }, [ready, source, dark]);
  const rendered = height !== null && !showSource;
  return (
    <figure className={classNames(styles.code, styles.diagram)} dir="ltr">
      <figcaption>
        <span>mermaid</span>
        <span>
          {height !== null && (
            <Button small onClick={() => setShowSource(!showSource)}>
              {showSource ? "Show diagram" : "Show source"}
            </Button>
          )}
          <CopyButton text={() => source} name="Copy code" />
        </span>
      </figcaption>
      <iframe
        ref={frame}
        title="Diagram"
        sandbox="allow-scripts"
        src="/static/app/diagram.html"
        className={rendered ? undefined : styles.loading}
        style={rendered ? { height } : {}}
        aria-hidden={!rendered}
        tabIndex={-1}
      />
      {!rendered && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <pre tabIndex={0}>
          <code>{source}</code>
        </pre>
      )}
    </figure>
  );
}

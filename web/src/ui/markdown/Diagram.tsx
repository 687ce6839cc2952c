// A Mermaid diagram, rendered in an iframe once it is near the viewport. Shows the source until it is rendered, if it
// cannot be, and while there are too many diagrams.

import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { FrameSlots } from "../../core/iframe-limit.ts";
import { withRoot } from "../root-path.ts";
import { useDarkTheme } from "../theme.ts";
import { Button, CopyButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { VisibilityObserver } from "../widgets/VirtualList.tsx";
import styles from "./markdown.module.css";

/** While a diagram streams in, it is rendered after this pause. */
const RENDER_DELAY_MS = 300;
const MAX_HEIGHT = 900;
const RENDER_MARGIN = 400;
const slots = new FrameSlots(20);

interface FrameMessage {
  readonly ready?: true;
  readonly height?: number;
  readonly failed?: true;
}

/** Whether the diagram in this box has a frame, and a function that gives it one in place of another diagram's. */
function useFrame(box: RefObject<Element | null>): [boolean, () => void] {
  const [framed, setFramed] = useState(false);
  const [observer] = useState(() => new VisibilityObserver(RENDER_MARGIN));
  const remove = useCallback(() => setFramed(false), []);
  useEffect(() => {
    if (!box.current) return;
    const stop = observer.observe(box.current, (near) => {
      if (near && slots.take(remove)) setFramed(true);
    });
    return () => {
      stop();
      slots.release(remove);
    };
  }, [box, observer, remove]);
  const request = () => {
    slots.replace(remove);
    setFramed(true);
  };
  return [framed, request];
}

export function Diagram({ source }: { source: string }) {
  const box = useRef<HTMLElement>(null);
  const frame = useRef<HTMLIFrameElement>(null);
  const [ready, setReady] = useState(false);
  const [height, setHeight] = useState<number | null>(null);
  const [showSource, setShowSource] = useState(false);
  const [framed, requestFrame] = useFrame(box);
  useEffect(() => {
    if (framed) return;
    setReady(false);
    setHeight(null);
  }, [framed]);
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
    <figure ref={box} className={classNames(styles.code, styles.diagram)} dir="ltr">
      <figcaption>
        <span>mermaid</span>
        <span>
          {!framed && (
            <Button small onClick={requestFrame}>
              Show diagram
            </Button>
          )}
          {height !== null && (
            <Button small onClick={() => setShowSource(!showSource)}>
              {showSource ? "Show diagram" : "Show source"}
            </Button>
          )}
          <CopyButton text={() => source} name="Copy code" />
        </span>
      </figcaption>
      {framed && (
        <iframe
          ref={frame}
          title="Diagram"
          sandbox="allow-scripts"
          src={withRoot("/static/app/diagram.html")}
          className={rendered ? undefined : styles.loading}
          style={rendered ? { height } : {}}
          aria-hidden={!rendered}
          tabIndex={-1}
        />
      )}
      {!rendered && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <pre tabIndex={0}>
          <code>{source}</code>
        </pre>
      )}
    </figure>
  );
}

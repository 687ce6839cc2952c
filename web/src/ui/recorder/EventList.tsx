// The events of a run, one per line, virtualized.

import { memo, useEffect, useRef, useState } from "react";
import type { Timeline } from "../../core/timeline.ts";
import type { RunEvent } from "../../core/types.ts";
import { formatJson, formatOffset } from "../format.ts";
import { classNames } from "../widgets/class-names.ts";
import text from "../widgets/text.module.css";
import { Chunk, toChunks, VisibilityObserver } from "../widgets/VirtualList.tsx";
import styles from "./EventList.module.css";

/** The height of a line in pixels, as in EventList.module.css. */
const LINE_HEIGHT = 26;
const CHUNK_SIZE = 40;
const RENDER_MARGIN = 400;

interface Props {
  events: readonly RunEvent[];
  timeline: Timeline;
  at: number;
  onChoose: (n: number) => void;
}

export function EventList({ events, timeline, at, onChoose }: Props) {
  const [observer] = useState(() => new VisibilityObserver(RENDER_MARGIN));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const list = box.current;
    if (!list) return;
    const top = (at - 1) * LINE_HEIGHT;
    if (top < list.scrollTop || top + LINE_HEIGHT > list.scrollTop + list.clientHeight) {
      list.scrollTop = top - list.clientHeight / 2;
    }
  }, [at]);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div ref={box} className={styles.events} data-scroll-container role="group" aria-label="Events">
      {toChunks(events, CHUNK_SIZE).map(({ key, items }) => (
        <Chunk key={key} observer={observer} as="ul" height={items.length * LINE_HEIGHT}>
          {() =>
            items.map((event) => (
              <EventLine
                key={event.seq}
                event={event}
                time={timeline.timed ? (timeline.times[event.seq - 1] ?? 0) : null}
                current={event.seq === at}
                onChoose={onChoose}
              />
            ))
          }
        </Chunk>
      ))}
    </div>
  );
}

interface EventLineProps {
  event: RunEvent;
  time: number | null;
  current: boolean;
  onChoose: (n: number) => void;
}

const EventLine = memo(
  function EventLine({ event, time, current, onChoose }: EventLineProps) {
    return (
      <li>
        <button type="button" aria-current={current ? "true" : undefined} onClick={() => onChoose(event.seq)}>
          <span className={styles.seq}>{event.seq}</span>
          {time !== null && <span className={styles.time}>{formatOffset(time)}</span>}
          <span className={styles.type}>{event.type}</span>
          <span className={classNames(text.ellipsis, styles.summary)}>{summarize(event)}</span>
        </button>
      </li>
    );
  },
  (a, b) => a.event === b.event && a.time === b.time && a.current === b.current,
);

function summarize({ data }: RunEvent): string {
  const value = data.text ?? data.args_delta ?? data.output_delta ?? data.name ?? data.decision;
  return value === undefined ? "" : formatJson(value).slice(0, 80);
}

// The events of a run, one to a line; those far from the window are not in the page.

import { memo, useEffect, useRef, useState } from "react";
import type { Timeline } from "../core/timeline.ts";
import type { Entry } from "../core/wire.ts";
import { duration, pretty } from "./format.ts";
import { Nearness, Piece, pieces } from "./windowing.tsx";

/** Height of a line in pixels, as `.events button` has it. */
const LINE = 26;
const PIECE = 40;

interface Props {
  entries: readonly Entry[];
  line: Timeline;
  at: number;
  onChoose: (n: number) => void;
}

export function EventList({ entries, line, at, onChoose }: Props) {
  const [nearness] = useState(() => new Nearness(".events", 400));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const list = box.current;
    if (!list) return;
    const top = (at - 1) * LINE;
    if (top < list.scrollTop || top + LINE > list.scrollTop + list.clientHeight) {
      list.scrollTop = top - list.clientHeight / 2;
    }
  }, [at]);
  return (
    // biome-ignore lint/a11y/useSemanticElements: the lines are in several lists, which are drawn as they come near
    <div ref={box} className="events" role="group" aria-label="Events">
      {pieces(entries, PIECE).map(({ key, items }) => (
        <Piece key={key} nearness={nearness} as="ul" height={items.length * LINE}>
          {() =>
            items.map((entry) => (
              <Line
                key={entry.seq}
                entry={entry}
                time={line.timed ? (line.times[entry.seq - 1] ?? 0) : null}
                here={entry.seq === at}
                onChoose={onChoose}
              />
            ))
          }
        </Piece>
      ))}
    </div>
  );
}

interface LineProps {
  entry: Entry;
  time: number | null;
  here: boolean;
  onChoose: (n: number) => void;
}

const Line = memo(
  function Line({ entry, time, here, onChoose }: LineProps) {
    return (
      <li>
        <button type="button" aria-current={here ? "true" : undefined} onClick={() => onChoose(entry.seq)}>
          <span className="event-seq">{entry.seq}</span>
          {time !== null && <span className="event-time">{duration(time)}</span>}
          <span className="event-type">{entry.type}</span>
          <span className="event-brief">{brief(entry)}</span>
        </button>
      </li>
    );
  },
  (a, b) => a.entry === b.entry && a.time === b.time && a.here === b.here,
);

function brief({ data }: Entry): string {
  const said = data.text ?? data.args_delta ?? data.output_delta ?? data.name ?? data.decision;
  return said === undefined ? "" : pretty(said).slice(0, 80);
}

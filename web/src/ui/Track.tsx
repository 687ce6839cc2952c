// A run along the time that it took: what it did in lanes, with a needle that can be dragged, moved with keys, or played.

import { type PointerEvent, useEffect, useRef, useState } from "react";
import { eventsBy, type Lane, type Span, type Timeline } from "../core/timeline.ts";
import type { Entry } from "../core/wire.ts";
import { count, duration } from "./format.ts";
import { IconButton } from "./widgets.tsx";

const LANES: readonly (readonly [Lane, string])[] = [
  ["thinking", "Thinking"],
  ["text", "Text"],
  ["tools", "Tools"],
  ["waiting", "Waiting"],
];
const TICKS = [0, 0.25, 0.5, 0.75, 1];

interface Props {
  entries: readonly Entry[];
  line: Timeline;
  at: number;
  onChoose: (n: number) => void;
}

export function Track({ entries, line, at, onChoose }: Props) {
  const { times, timed, total, spans, gaps, steps } = line;
  const whole = Math.max(total, 1);
  const place = (time: number) => `${(100 * time) / whole}%`;
  const now = at > 0 ? (times[at - 1] ?? 0) : 0;
  const play = usePlay(line, at, onChoose);
  const box = useRef<HTMLDivElement>(null);
  const lanes = LANES.filter(([lane]) => lane === "text" || spans.some((span) => span.lane === lane));

  const point = (event: PointerEvent) => {
    const area = box.current?.getBoundingClientRect();
    if (!area) return;
    play.stop();
    const share = Math.min(1, Math.max(0, (event.clientX - area.left) / area.width));
    onChoose(eventsBy(times, share * whole));
  };
  return (
    <section className="track" aria-label="Time line">
      <div className="track-bar">
        <IconButton
          name={play.on ? "Pause" : "Play"}
          icon={play.on ? "pause" : "play"}
          disabled={!timed || entries.length < 2}
          onClick={play.on ? play.stop : play.start}
        />
        <span className="track-now">
          {timed && <strong>{duration(now)}</strong>}
          <span className="quiet">
            Event {count(at)} of {count(entries.length)}
            {at > 0 && `: ${entries[at - 1]?.type}`}
          </span>
        </span>
      </div>
      <div className="track-rows">
        <div className="track-names" aria-hidden="true">
          {lanes.map(([lane, name]) => (
            <span key={lane}>{name}</span>
          ))}
        </div>
        <div
          ref={box}
          className="track-lanes"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            point(event);
          }}
          onPointerMove={(event) => event.buttons & 1 && point(event)}
        >
          {gaps.map((gap) => (
            <i
              key={gap.seq}
              className="gap"
              title={`${duration(gap.to - gap.from)} of silence`}
              style={{ left: place(gap.from), width: place(gap.to - gap.from) }}
            />
          ))}
          {steps.map((step, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps are places
            <i key={`step ${n}`} className="step" style={{ left: place(step) }} />
          ))}
          {lanes.map(([lane]) => (
            <div key={lane} className={`lane ${lane}`}>
              {spans
                .filter((span) => span.lane === lane)
                .map((span, n) => (
                  <i
                    // biome-ignore lint/suspicious/noArrayIndexKey: spans are only ever added at the end
                    key={n}
                    className={span.failed ? "span failed" : "span"}
                    title={titleOf(span, timed)}
                    style={{ left: place(span.from), width: place(span.to - span.from) }}
                  />
                ))}
            </div>
          ))}
          <i className="needle" style={{ left: place(now) }} />
          <input
            type="range"
            className="track-range"
            aria-label="Event"
            min={0}
            max={entries.length}
            value={at}
            aria-valuetext={`${at} of ${entries.length}${timed ? `, ${duration(now)}` : ""}`}
            onChange={(event) => {
              play.stop();
              onChoose(Number(event.target.value));
            }}
          />
        </div>
      </div>
      {timed && (
        <div className="track-ticks" aria-hidden="true">
          {TICKS.map((tick) => (
            <span key={tick}>{duration(tick * total)}</span>
          ))}
        </div>
      )}
    </section>
  );
}

function titleOf(span: Span, timed: boolean): string {
  return timed ? `${span.name}: ${duration(span.to - span.from)}, from ${duration(span.from)}` : span.name;
}

/** The run again, as quickly as it was. */
function usePlay(line: Timeline, at: number, onChoose: (n: number) => void) {
  const [from, setFrom] = useState<{ time: number; at: number } | null>(null);
  const choose = useRef(onChoose);
  choose.current = onChoose;
  useEffect(() => {
    if (!from) return;
    let frame = 0;
    const turn = () => {
      const time = from.time + performance.now() - from.at;
      choose.current(eventsBy(line.times, time));
      if (time >= line.total) setFrom(null);
      else frame = requestAnimationFrame(turn);
    };
    frame = requestAnimationFrame(turn);
    return () => cancelAnimationFrame(frame);
  }, [from, line]);
  const start = () => {
    const ended = at >= line.times.length;
    setFrom({ time: ended || at === 0 ? 0 : (line.times[at - 1] ?? 0), at: performance.now() });
  };
  return { on: from !== null, start, stop: () => setFrom(null) };
}

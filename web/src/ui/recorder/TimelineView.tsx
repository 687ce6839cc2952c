// A run along its timeline: activity in lanes, and a playhead that can be dragged, moved by keyboard, or played.

import { type PointerEvent, useEffect, useEffectEvent, useRef, useState } from "react";
import { countEventsAt, type Lane, type Span, type Timeline } from "../../core/timeline.ts";
import type { RunEvent } from "../../core/types.ts";
import { formatCount, formatDuration } from "../format.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import text from "../widgets/text.module.css";
import styles from "./TimelineView.module.css";

const LANES: readonly (readonly [Lane, string])[] = [
  ["thinking", "Thinking"],
  ["text", "Text"],
  ["tools", "Tools"],
  ["waiting", "Waiting"],
];
const TICKS = [0, 0.25, 0.5, 0.75, 1];

interface Props {
  events: readonly RunEvent[];
  timeline: Timeline;
  at: number;
  onChoose: (n: number) => void;
}

export function TimelineView({ events, timeline, at, onChoose }: Props) {
  const { times, timed, total } = timeline;
  const now = at > 0 ? (times[at - 1] ?? 0) : 0;
  const playback = usePlayback(timeline, at, onChoose);
  const choose = (n: number) => {
    playback.stop();
    onChoose(n);
  };
  return (
    <section className={styles.timeline} aria-label="Timeline">
      <div className={styles.toolbar}>
        <IconButton
          name={playback.playing ? "Pause" : "Play"}
          icon={playback.playing ? "pause" : "play"}
          disabled={!timed || events.length < 2}
          onClick={playback.playing ? playback.stop : playback.start}
        />
        <span className={styles.position}>
          {timed && <strong>{formatDuration(now)}</strong>}
          <span className={text.quiet}>
            Event {formatCount(at)} of {formatCount(events.length)}
            {at > 0 && `: ${events[at - 1]?.type}`}
          </span>
        </span>
      </div>
      <Lanes timeline={timeline} now={now} onChoose={choose}>
        <input
          type="range"
          className={text.visuallyHidden}
          aria-label="Event"
          min={0}
          max={events.length}
          value={at}
          aria-valuetext={`${at} of ${events.length}${timed ? `, ${formatDuration(now)}` : ""}`}
          onChange={(event) => choose(Number(event.target.value))}
        />
      </Lanes>
      {timed && (
        <div className={styles.ticks} aria-hidden="true">
          {TICKS.map((tick) => (
            <span key={tick}>{formatDuration(tick * total)}</span>
          ))}
        </div>
      )}
    </section>
  );
}

interface LanesProps {
  timeline: Timeline;
  now: number;
  onChoose: (n: number) => void;
  children: React.ReactNode;
}

function Lanes({ timeline: { times, timed, total, spans, gaps, steps }, now, onChoose, children }: LanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const duration = Math.max(total, 1);
  const percent = (time: number) => `${(100 * time) / duration}%`;
  const lanes = LANES.filter(([lane]) => lane === "text" || spans.some((span) => span.lane === lane));
  const scrub = (event: PointerEvent) => {
    const area = box.current?.getBoundingClientRect();
    if (!area) return;
    const share = Math.min(1, Math.max(0, (event.clientX - area.left) / area.width));
    onChoose(countEventsAt(times, share * duration));
  };
  return (
    <div className={styles.rows}>
      <div className={styles.names} aria-hidden="true">
        {lanes.map(([lane, name]) => (
          <span key={lane}>{name}</span>
        ))}
      </div>
      <div
        ref={box}
        className={styles.lanes}
        data-lanes
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          scrub(event);
        }}
        onPointerMove={(event) => event.buttons & 1 && scrub(event)}
      >
        {gaps.map((gap) => (
          <i
            key={gap.seq}
            className={styles.gap}
            title={`${formatDuration(gap.to - gap.from)} pause`}
            style={{ left: percent(gap.from), width: percent(gap.to - gap.from) }}
          />
        ))}
        {steps.map((step, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: steps are only appended
          <i key={`step ${n}`} className={styles.step} style={{ left: percent(step) }} />
        ))}
        {lanes.map(([lane]) => (
          <div key={lane} className={classNames(styles.lane, styles[lane])}>
            {spans
              .filter((span) => span.lane === lane)
              .map((span, n) => (
                <i
                  // biome-ignore lint/suspicious/noArrayIndexKey: spans are only appended
                  key={n}
                  className={classNames(styles.span, span.failed && styles.failed)}
                  title={titleOf(span, timed)}
                  style={{ left: percent(span.from), width: percent(span.to - span.from) }}
                />
              ))}
          </div>
        ))}
        <i className={styles.playhead} style={{ left: percent(now) }} />
        {children}
      </div>
    </div>
  );
}

function titleOf(span: Span, timed: boolean): string {
  if (!timed) return span.name;
  return `${span.name}: ${formatDuration(span.to - span.from)}, starting at ${formatDuration(span.from)}`;
}

/** Plays the run in real time. */
function usePlayback({ times, total }: Timeline, at: number, onChoose: (n: number) => void) {
  const [started, setStarted] = useState<{ time: number; clock: number } | null>(null);
  const advance = useEffectEvent((time: number) => {
    onChoose(countEventsAt(times, time));
    if (time >= total) setStarted(null);
  });
  useEffect(() => {
    if (!started) return;
    let frame = 0;
    const tick = () => {
      advance(started.time + performance.now() - started.clock);
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [started]);
  const start = () => {
    const fromStart = at === 0 || at >= times.length;
    setStarted({ time: fromStart ? 0 : (times[at - 1] ?? 0), clock: performance.now() });
  };
  return { playing: started !== null, start, stop: () => setStarted(null) };
}

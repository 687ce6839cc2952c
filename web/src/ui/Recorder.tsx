// The flight recorder: a run's journal as a line to scrub along, with the message as it was at that point.

import { useEffect, useMemo, useState } from "react";
import { Recording } from "../core/recording.ts";
import type { Entry, Run } from "../core/wire.ts";
import { useApp, useStore } from "./context.ts";
import { count, duration, exactly, pretty } from "./format.ts";
import { Parts } from "./Message.tsx";
import { Link } from "./router.tsx";
import { ScreenHead } from "./ScreenHead.tsx";

export default function Recorder({ rid }: { rid: string }) {
  const { env } = useApp();
  const [recording, setRecording] = useState<Recording | null>(null);
  useEffect(() => {
    const begun = new Recording(env, rid);
    setRecording(begun);
    return () => begun.close();
  }, [env, rid]);
  return recording && <Recorded recording={recording} rid={rid} />;
}

function Recorded({ recording, rid }: { recording: Recording; rid: string }) {
  const app = useApp();
  const run = useRun(rid);
  const { entries, outcome } = useStore(recording.state);
  const [chosen, setChosen] = useState<number | null>(null); // null: the newest
  const at = Math.min(chosen ?? entries.length, entries.length);
  const shown = recording.at(at);
  useEffect(() => {
    document.title = "Flight recorder · Holdfast";
  }, []);
  const save = () => {
    const href = URL.createObjectURL(new Blob([recording.lines()], { type: "application/x-ndjson" }));
    Object.assign(document.createElement("a"), { href, download: `${rid}.jsonl` }).click();
    app.env.after(1000, () => URL.revokeObjectURL(href));
  };
  return (
    <div className="screen wide">
      <ScreenHead title="Flight recorder">
        {run && (
          <Link className="button" href={`/c/${run.session_id}`}>
            Chat
          </Link>
        )}
        <button type="button" className="button" onClick={save} disabled={!entries.length}>
          Export
        </button>
      </ScreenHead>
      {outcome === "gone" && <p className="problem">There is no such run.</p>}
      {outcome === "pruned" && <p className="problem">Its journal is past the time that journals are kept.</p>}
      <dl className="figures">
        <Figure name="Run" value={run?.status ?? "…"} />
        <Figure name="Began" value={run?.started_at ? exactly(run.started_at) : "—"} />
        <Figure name="Took" value={took(run)} />
        <Figure name="Events" value={count(entries.length)} />
        <Figure name="First output" value={firstOutput(entries)} />
        <Figure name="Tools" value={tools(entries)} />
      </dl>
      <div className="scrubber">
        <Track entries={entries} at={at} />
        <input
          type="range"
          aria-label="Event"
          min={0}
          max={entries.length}
          value={at}
          aria-valuetext={`${at} of ${entries.length}`}
          onChange={(event) => {
            const to = Number(event.target.value);
            setChosen(to === entries.length ? null : to);
          }}
        />
        <p className="quiet">
          Event {count(at)} of {count(entries.length)}
          {at > 0 && `: ${entries[at - 1]?.type}`}
        </p>
      </div>
      <div className="recorder">
        <EventList entries={entries} at={at} onChoose={setChosen} />
        <section className="recorder-message" aria-label="The message at this point">
          <Parts parts={shown.parts} growing={false} plain={false} />
          {!shown.parts.length && <p className="quiet">Nothing yet.</p>}
        </section>
      </div>
    </div>
  );
}

function useRun(rid: string): Run | null {
  const app = useApp();
  const [run, setRun] = useState<Run | null>(null);
  useEffect(() => {
    const read = () => void app.api.run(rid).then(setRun, () => undefined);
    read();
    return app.onChange((change) => change.run_id === rid && read());
  }, [app, rid]);
  return run;
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function took(run: Run | null): string {
  if (!run?.started_at) return "—";
  const end = run.ended_at ? Date.parse(run.ended_at) : Date.now();
  return duration(end - Date.parse(run.started_at));
}

function firstOutput(entries: readonly Entry[]): string {
  const first = entries.find((entry) => entry.type.endsWith(".delta") || entry.type === "tool.started");
  return first ? `event ${first.seq}` : "—";
}

function tools(entries: readonly Entry[]): string {
  const done = entries.filter((entry) => entry.type === "tool.finished");
  if (!done.length) return "none";
  const ms = done.reduce((sum, entry) => sum + (Number(entry.data.duration_ms) || 0), 0);
  return `${done.length}, ${duration(ms)}`;
}

const KINDS: readonly (readonly [string, string])[] = [
  ["text", "text"],
  ["reasoning", "reasoning"],
  ["tool", "tool"],
  ["approval", "approval"],
  ["run", "run"],
];
const kindOf = (type: string): string => KINDS.find(([prefix]) => type.startsWith(prefix))?.[1] ?? "other";

/** Neighbours of one kind are one stretch, so a long run is as quick to draw as a short one. */
function Track({ entries, at }: { entries: readonly Entry[]; at: number }) {
  const stretches = useMemo(() => {
    const found: { kind: string; from: number; to: number }[] = [];
    for (const entry of entries) {
      const kind = kindOf(entry.type);
      const last = found.at(-1);
      if (last?.kind === kind) last.to = entry.seq;
      else found.push({ kind, from: entry.seq - 1, to: entry.seq });
    }
    return found;
  }, [entries]);
  const total = Math.max(1, entries.length);
  return (
    <svg className="track" viewBox={`0 0 ${total} 10`} preserveAspectRatio="none" aria-hidden="true">
      {stretches.map((item) => (
        <rect
          key={item.from}
          className={`k-${item.kind}`}
          x={item.from}
          width={item.to - item.from}
          y="0"
          height="10"
        />
      ))}
      <rect className="k-ahead" x={at} width={total - at} y="0" height="10" />
    </svg>
  );
}

interface EventListProps {
  entries: readonly Entry[];
  at: number;
  onChoose: (n: number) => void;
}

const WINDOW = 60;

/** A window of events around the chosen one. */
function EventList({ entries, at, onChoose }: EventListProps) {
  const from = Math.max(0, Math.min(at - WINDOW / 2, entries.length - WINDOW));
  return (
    <ol className="events" aria-label="Events">
      {entries.slice(from, from + WINDOW).map((entry) => (
        <li key={entry.seq}>
          <button
            type="button"
            aria-current={entry.seq === at ? "true" : undefined}
            className={`k-${kindOf(entry.type)}`}
            onClick={() => onChoose(entry.seq)}
          >
            <span className="event-seq">{entry.seq}</span>
            <span className="event-type">{entry.type}</span>
            <span className="event-brief">{brief(entry)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function brief({ data }: Entry): string {
  const said = data.text ?? data.args_delta ?? data.output_delta ?? data.name ?? data.decision;
  return said === undefined ? "" : pretty(said).slice(0, 80);
}

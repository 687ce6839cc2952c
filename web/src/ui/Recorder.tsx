// The flight recorder: a run's journal as a line in time to scrub along, with the message as it was at that instant.

import { useEffect, useMemo, useState } from "react";
import { Recording } from "../core/recording.ts";
import { type Timeline, timeline } from "../core/timeline.ts";
import type { Entry, Run } from "../core/wire.ts";
import { useApp, useStore } from "./context.ts";
import { EventList } from "./EventList.tsx";
import { count, duration, exactly } from "./format.ts";
import { Parts } from "./Message.tsx";
import { Link } from "./router.tsx";
import { ScreenHead } from "./ScreenHead.tsx";
import { Track } from "./Track.tsx";

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
  const line = useMemo(() => timeline(entries), [entries]);
  const [chosen, setChosen] = useState<number | null>(null); // null: the newest
  const at = Math.min(chosen ?? entries.length, entries.length);
  const shown = recording.at(at);
  const choose = (to: number) => setChosen(to >= entries.length ? null : to);
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
        <Figure name="Took" value={took(run, line)} />
        <Figure name="First token" value={line.firstToken === null ? "—" : duration(line.firstToken)} />
        <Figure name="Tools" value={tools(entries)} />
        <Figure name="Longest silence" value={silence(line)} />
        <Figure name="Events" value={count(entries.length)} />
      </dl>
      <Track entries={entries} line={line} at={at} onChoose={choose} />
      <div className="recorder">
        <EventList entries={entries} line={line} at={at} onChoose={choose} />
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

function took(run: Run | null, line: Timeline): string {
  if (line.timed) return duration(line.total);
  if (!run?.started_at) return "—";
  const end = run.ended_at ? Date.parse(run.ended_at) : Date.now();
  return duration(end - Date.parse(run.started_at));
}

function tools(entries: readonly Entry[]): string {
  const done = entries.filter((entry) => entry.type === "tool.finished");
  if (!done.length) return "none";
  const ms = done.reduce((sum, entry) => sum + (Number(entry.data.duration_ms) || 0), 0);
  return `${done.length}, ${duration(ms)}`;
}

function silence({ gaps, timed }: Timeline): string {
  if (!timed) return "—";
  return gaps.length ? duration(Math.max(...gaps.map((gap) => gap.to - gap.from))) : "none";
}

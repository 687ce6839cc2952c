// The flight recorder: a run's journal as a timeline, with the message as it was at any point.

import { useEffect, useMemo, useState } from "react";
import { modelName } from "../../core/models.ts";
import { Recording } from "../../core/recording.ts";
import { firstWords } from "../../core/session-list.ts";
import { buildTimeline, type Timeline } from "../../core/timeline.ts";
import type { Run, RunEvent } from "../../core/types.ts";
import { MessageParts, textOf } from "../chat/MessageParts.tsx";
import { useApp, useStore } from "../context.ts";
import { formatCount, formatDateTime, formatDuration, runStatus } from "../format.ts";
import { Link } from "../router.tsx";
import { ShareDialog } from "../sidebar/share-dialog.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { CenteredScreen, ScrollingScreen } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";
import { EventList } from "./EventList.tsx";
import styles from "./FlightRecorder.module.css";
import { TimelineView } from "./TimelineView.tsx";

export default function FlightRecorder({ rid }: { rid: string }) {
  const { env } = useApp();
  const [recording, setRecording] = useState<Recording | null>(null);
  useEffect(() => {
    const opened = new Recording(env, rid);
    setRecording(opened);
    return () => opened.close();
  }, [env, rid]);
  return recording && <OpenRecording recording={recording} rid={rid} />;
}

function OpenRecording({ recording, rid }: { recording: Recording; rid: string }) {
  const { env, catalog } = useApp();
  const { models } = useStore(catalog);
  const run = useRun(rid);
  const question = useQuestion(run);
  const { events, outcome } = useStore(recording.state);
  const timeline = useMemo(() => buildTimeline(events), [events]);
  const [sharing, setSharing] = useState(false);
  const [chosen, setChosen] = useState<number | null>(null); // null follows the newest event
  const at = Math.min(chosen ?? events.length, events.length);
  const shown = recording.at(at);
  const choose = (to: number) => setChosen(to >= events.length ? null : to);
  const exportEvents = () => {
    const href = URL.createObjectURL(new Blob([recording.toJsonLines()], { type: "application/x-ndjson" }));
    Object.assign(document.createElement("a"), { href, download: `${rid}.jsonl` }).click();
    env.setTimer(1000, () => URL.revokeObjectURL(href));
  };
  if (outcome === "not-found") {
    return (
      <CenteredScreen>
        <h1>Run not found</h1>
        <p>It may have been deleted with its chat.</p>
        <Link className={buttonClass()} href="/activity">
          Activity
        </Link>
      </CenteredScreen>
    );
  }
  return (
    <ScrollingScreen
      title="Flight recorder"
      actions={
        <>
          {run?.ended_at && (
            <Button small onClick={() => setSharing(true)}>
              Share
            </Button>
          )}
          <Button small onClick={exportEvents} disabled={!events.length}>
            Export
          </Button>
        </>
      }
    >
      {run && sharing && <ShareDialog sid={run.session_id} rid={rid} onClose={() => setSharing(false)} />}
      {outcome === "pruned" && <Alert text="Recording expired" />}
      {run && (
        <p className={classNames(text.quiet, styles.question)}>
          {question} <Link href={`/c/${run.session_id}`}>Open chat</Link>
        </p>
      )}
      <dl className={styles.figures}>
        {run?.model && <Figure name="Model" value={modelName(models, run.model)} />}
        <Figure name="Status" value={run ? runStatus(run) : "…"} />
        <Figure name="Started" value={run?.started_at ? formatDateTime(run.started_at) : "—"} />
        <Figure name="Duration" value={totalDuration(run, timeline)} />
        <Figure name="First token" value={timeline.firstToken === null ? "—" : formatDuration(timeline.firstToken)} />
        <Figure name="Tools" value={toolSummary(events)} />
        <Figure
          name="Longest pause"
          value={longestPause(timeline)}
          title="Longest time without an event, not counting tools and approvals"
        />
        <Figure name="Events" value={formatCount(events.length)} />
      </dl>
      <TimelineView events={events} timeline={timeline} at={at} onChoose={choose} />
      <div className={styles.columns}>
        <EventList events={events} timeline={timeline} at={at} onChoose={choose} />
        <section className={styles.message} aria-label="Message at this point">
          <MessageParts parts={shown.parts} growing={false} plain={false} />
          {!shown.parts.length && <p className={text.quiet}>No output yet</p>}
        </section>
      </div>
    </ScrollingScreen>
  );
}

function useRun(rid: string): Run | null {
  const app = useApp();
  const [run, setRun] = useState<Run | null>(null);
  useEffect(() => {
    const load = () => void app.api.run(rid).then(setRun, () => undefined);
    load();
    return app.onChange((change) => change.run_id === rid && load());
  }, [app, rid]);
  return run;
}

/** The message that the run answers, if it is among the newest of its chat; else the title of the chat. */
function useQuestion(run: Run | null): string | null {
  const { api } = useApp();
  const [question, setQuestion] = useState<string | null>(null);
  const [sid, mid] = [run?.session_id, run?.user_message_id];
  useEffect(() => {
    if (!sid) return;
    Promise.all([api.session(sid), api.messages(sid)]).then(
      ([{ title }, { items }]) => {
        const asked = textOf(items.find((message) => message.id === mid)?.parts ?? []);
        setQuestion(firstWords(asked) || title || null);
      },
      () => undefined,
    );
  }, [api, sid, mid]);
  return question && `“${question}”`;
}

function Figure({ name, value, title }: { name: string; value: string; title?: string }) {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function totalDuration(run: Run | null, { timed, total }: Timeline): string {
  if (timed) return formatDuration(total);
  if (!run?.started_at) return "—";
  const end = run.ended_at ? Date.parse(run.ended_at) : Date.now();
  return formatDuration(end - Date.parse(run.started_at));
}

function toolSummary(events: readonly RunEvent[]): string {
  const finished = events.filter((event) => event.type === "tool.finished");
  if (!finished.length) return "None";
  const ms = finished.reduce((sum, event) => sum + (Number(event.data.duration_ms) || 0), 0);
  return `${finished.length} ${finished.length === 1 ? "call" : "calls"}, ${formatDuration(ms)}`;
}

function longestPause({ gaps, timed }: Timeline): string {
  if (!timed) return "—";
  return gaps.length ? formatDuration(Math.max(...gaps.map((gap) => gap.to - gap.from))) : "None";
}

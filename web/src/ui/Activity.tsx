// All runs, live: what works now, and how the others ended.

import { useCallback, useEffect, useMemo, useState } from "react";
import { Latest } from "../core/store.ts";
import type { Run, RunStatus } from "../core/wire.ts";
import { useApp, useStore } from "./context.ts";
import { count, duration, when } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Action, Row, Rows } from "./Rows.tsx";
import { Link } from "./router.tsx";
import { ScreenHead } from "./ScreenHead.tsx";

const OPEN = ["running", "waiting", "queued"];

export default function Activity() {
  const runs = useRuns();
  useEffect(() => {
    document.title = "Activity · Holdfast";
  }, []);
  const open = runs?.filter((run) => OPEN.includes(run.status)) ?? [];
  const ended = runs?.filter((run) => !OPEN.includes(run.status)) ?? [];
  return (
    <div className="screen wide">
      <ScreenHead title="Activity" />
      <section className="pad" aria-label="Now">
        <h2 className="section">Now</h2>
        {runs && !open.length && <p className="quiet">Nothing is running.</p>}
        <RunList runs={open} />
      </section>
      <section className="pad" aria-label="Ended">
        <h2 className="section">Ended</h2>
        {runs && !ended.length && <p className="quiet">No run has ended yet.</p>}
        <RunList runs={ended} />
      </section>
    </div>
  );
}

function useRuns(): readonly Run[] | null {
  const app = useApp();
  const [runs, setRuns] = useState<readonly Run[] | null>(null);
  useEffect(() => {
    const latest = new Latest(() =>
      app.api.runs({ limit: 100 }).then(
        (page) => setRuns(page.items),
        () => undefined,
      ),
    );
    void latest.run();
    return app.onChange((change) => /run|reset/.test(change.kind) && void latest.run());
  }, [app]);
  return runs;
}

const KINDS: Readonly<Record<RunStatus, "good" | "bad" | "warn" | "calm">> = {
  queued: "calm",
  running: "good",
  waiting: "warn",
  complete: "good",
  cancelled: "calm",
  failed: "bad",
  interrupted: "warn",
};

function RunList({ runs }: { runs: readonly Run[] }) {
  const titles = useTitles(runs);
  return (
    <Rows>
      {runs.map((run) => (
        <RunRow key={run.id} run={run} title={titles.get(run.session_id) || "Untitled chat"} />
      ))}
    </Rows>
  );
}

function RunRow({ run, title }: { run: Run; title: string }) {
  const app = useApp();
  const [stopping, setStopping] = useState(false);
  const open = OPEN.includes(run.status);
  const stop = useCallback(async () => {
    setStopping(true);
    await app.api.cancel(run.id).catch(() => setStopping(false));
  }, [app, run.id]);
  return (
    <Row
      status={{ text: run.status, kind: KINDS[run.status] }}
      title={<Link href={`/c/${run.session_id}`}>{title}</Link>}
      facts={[
        when(run.created_at),
        run.model,
        run.started_at && run.ended_at && duration(Date.parse(run.ended_at) - Date.parse(run.started_at)),
        run.usage && `${count(run.usage.input_tokens + run.usage.output_tokens)} tokens`,
        run.recovery && `recovery: ${run.recovery.state}`,
        run.error?.message,
      ]}
    >
      {open && <Action name="Stop" disabled={stopping} onClick={() => void stop()} />}
      <Link className="icon-button" href={`/runs/${run.id}`} aria-label="Flight recorder" title="Flight recorder">
        <Icon name="record" />
      </Link>
    </Row>
  );
}

/** Titles of the runs' sessions: from the list where it has them, asked for otherwise (archived, further down). */
function useTitles(runs: readonly Run[]): ReadonlyMap<string, string> {
  const app = useApp();
  const { items, loaded } = useStore(app.sessions.state);
  const [more, setMore] = useState<ReadonlyMap<string, string>>(new Map());
  const known = useMemo(() => new Map([...more, ...items.map(({ id, title }) => [id, title] as const)]), [items, more]);
  const missing = runs.find((run) => !known.has(run.session_id))?.session_id;
  useEffect(() => {
    if (!loaded || missing === undefined) return;
    app.api.session(missing).then(
      ({ title }) => setMore((before) => new Map(before).set(missing, title)),
      () => setMore((before) => new Map(before).set(missing, "Deleted chat")),
    );
  }, [app, loaded, missing]);
  return known;
}

// All runs, live: what works now, and how the others ended.

import { useCallback, useEffect, useState } from "react";
import { Latest } from "../core/store.ts";
import type { Run } from "../core/wire.ts";
import { useApp, useStore } from "./context.ts";
import { count, duration, when } from "./format.ts";
import { Icon } from "./icons.tsx";
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

function RunList({ runs }: { runs: readonly Run[] }) {
  return (
    <ul className="runs">
      {runs.map((run) => (
        <RunRow key={run.id} run={run} />
      ))}
    </ul>
  );
}

function RunRow({ run }: { run: Run }) {
  const app = useApp();
  const title = useTitle(run.session_id);
  const [stopping, setStopping] = useState(false);
  const open = OPEN.includes(run.status);
  const stop = useCallback(async () => {
    setStopping(true);
    await app.api.cancel(run.id).catch(() => setStopping(false));
  }, [app, run.id]);
  return (
    <li className="run">
      <span className={`status ${run.status}`}>{run.status}</span>
      <Link className="run-title" href={`/c/${run.session_id}`}>
        {title}
      </Link>
      <span className="quiet run-facts">
        {[
          run.model,
          when(run.created_at),
          run.started_at && run.ended_at && duration(Date.parse(run.ended_at) - Date.parse(run.started_at)),
          run.usage && `${count(run.usage.input_tokens + run.usage.output_tokens)} tokens`,
          run.recovery && `recovery: ${run.recovery.state}`,
          run.error?.message,
        ]
          .filter(Boolean)
          .join(" · ")}
      </span>
      {open && (
        <button type="button" className="button small" disabled={stopping} onClick={() => void stop()}>
          Stop
        </button>
      )}
      <Link className="icon-button" href={`/runs/${run.id}`} aria-label="Flight recorder" title="Flight recorder">
        <Icon name="record" />
      </Link>
    </li>
  );
}

function useTitle(sid: string): string {
  const { items } = useStore(useApp().sessions.state);
  return items.find((session) => session.id === sid)?.title || "Untitled chat";
}

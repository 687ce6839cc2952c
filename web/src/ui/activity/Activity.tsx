// All runs: those in progress, and how the others ended.

import { useCallback, useEffect, useMemo, useState } from "react";
import { modelName } from "../../core/models.ts";
import { CoalescedTask } from "../../core/store.ts";
import type { Recovery, Run, RunStatus } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount, formatDuration, formatTime, runStatus } from "../format.ts";
import { Link } from "../router.tsx";
import { iconButtonClass } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList, type StatusKind } from "../widgets/ItemList.tsx";
import { Icon } from "../widgets/icons.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";

const OPEN: readonly RunStatus[] = ["running", "waiting", "queued"];

export default function Activity() {
  const runs = useRuns();
  const open = runs?.filter((run) => OPEN.includes(run.status)) ?? [];
  const ended = runs?.filter((run) => !OPEN.includes(run.status)) ?? [];
  return (
    <ScrollingScreen title="Activity">
      <section aria-label="In progress">
        <h2 className={text.sectionTitle}>In progress</h2>
        {runs && !open.length && <p className={text.quiet}>No runs in progress</p>}
        <RunList runs={open} />
      </section>
      <section aria-label="Finished">
        <h2 className={text.sectionTitle}>Finished</h2>
        {runs && !ended.length && <p className={text.quiet}>No finished runs yet</p>}
        <RunList runs={ended} />
      </section>
    </ScrollingScreen>
  );
}

function useRuns(): readonly Run[] | null {
  const app = useApp();
  const [runs, setRuns] = useState<readonly Run[] | null>(null);
  useEffect(() => {
    const reload = new CoalescedTask(() =>
      app.api.runs({ limit: 100 }).then(
        (page) => setRuns(page.items.filter((run) => !wasAdded(run))),
        () => undefined,
      ),
    );
    void reload.run();
    return app.onChange((change) => /run|reset/.test(change.kind) && void reload.run());
  }, [app]);
  return runs;
}

/** Whether its message was added to the answer of another run: it has none of its own. */
const wasAdded = ({ status, reason }: Run): boolean => status === "cancelled" && reason === "steered";

const STATUS_KINDS: Readonly<Record<RunStatus, StatusKind>> = {
  queued: "neutral",
  running: "good",
  waiting: "warning",
  complete: "good",
  cancelled: "neutral",
  failed: "bad",
  interrupted: "warning",
};

const RECOVERY: Readonly<Record<Recovery["state"], string>> = {
  pending: "Recovering output",
  recovered: "Output recovered",
  none: "No output recovered",
};

function RunList({ runs }: { runs: readonly Run[] }) {
  const titles = useTitles(runs);
  return (
    <ItemList>
      {runs.map((run) => (
        <RunRow key={run.id} run={run} title={titles.get(run.session_id) || "Untitled chat"} />
      ))}
    </ItemList>
  );
}

function RunRow({ run, title }: { run: Run; title: string }) {
  const app = useApp();
  const { models } = useStore(app.catalog);
  const [stopping, setStopping] = useState(false);
  const open = OPEN.includes(run.status);
  const stop = useCallback(async () => {
    setStopping(true);
    await app.api.cancel(run.id).catch(() => setStopping(false));
  }, [app, run.id]);
  return (
    <Item
      status={{ text: runStatus(run), kind: STATUS_KINDS[run.status] }}
      title={<Link href={`/c/${run.session_id}`}>{title}</Link>}
      facts={[
        formatTime(run.created_at),
        run.model && modelName(models, run.model),
        run.started_at && run.ended_at && formatDuration(Date.parse(run.ended_at) - Date.parse(run.started_at)),
        run.usage &&
          `${formatCount(run.usage.input_tokens)} input and ${formatCount(run.usage.output_tokens)} output tokens`,
        run.recovery && RECOVERY[run.recovery.state],
        run.error?.message,
      ]}
    >
      {open && <ItemAction name="Stop" disabled={stopping} onClick={() => void stop()} />}
      <Link className={iconButtonClass} href={`/runs/${run.id}`} aria-label="Flight recorder" title="Flight recorder">
        <Icon name="record" />
      </Link>
    </Item>
  );
}

/** Titles of the runs' sessions; those not in the loaded list (archived, older) are fetched one by one. */
function useTitles(runs: readonly Run[]): ReadonlyMap<string, string> {
  const app = useApp();
  const { items, loaded } = useStore(app.sessions.state);
  const [fetched, setFetched] = useState<ReadonlyMap<string, string>>(new Map());
  const known = useMemo(
    () => new Map([...fetched, ...items.map(({ id, title }) => [id, title] as const)]),
    [items, fetched],
  );
  const missing = runs.find((run) => !known.has(run.session_id))?.session_id;
  useEffect(() => {
    if (!loaded || missing === undefined) return;
    app.api.session(missing).then(
      ({ title }) => setFetched((before) => new Map(before).set(missing, title)),
      () => setFetched((before) => new Map(before).set(missing, "Deleted chat")),
    );
  }, [app, loaded, missing]);
  return known;
}

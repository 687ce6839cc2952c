// Polls the open runs while the tab is hidden and its streams are closed, to report which ended or wait for a person.
// How it is shown: ui/HiddenTabNotice.tsx. Devices with notifications: engine/transactions/notifications.py (of what),
// service-worker/main.ts (not while the chat is visible).

import { type Api, isMissing } from "./api.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";
import type { Run } from "./types.ts";

export interface HiddenTabUpdate {
  readonly run: Run;
  readonly kind: "ended" | "waits";
}

const POLL_INTERVAL_MS = 3000;
/** The endings that are worth a notice, as in `note_end` of the server: whoever cancels a run knows of it. */
const NOTED: readonly string[] = ["complete", "failed", "interrupted"] satisfies Run["status"][];

export class HiddenTabMonitor {
  /** What happened since the tab was hidden; empty while it is visible. */
  readonly updates = new Store<readonly HiddenTabUpdate[]>([]);
  private openRuns: ReadonlyMap<string, Run> = new Map();
  private cancelTimer: (() => void) | null = null;
  /** How often the tab was hidden or shown: a request that is under way belongs to one such time. */
  private turns = 0;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {
    env.onVisibilityChange(() => this.startOrStop());
  }

  private startOrStop(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
    this.openRuns = new Map();
    this.updates.set([]);
    const turn = ++this.turns;
    if (this.env.isHidden()) void this.poll(turn, true);
  }

  private async poll(turn: number, first: boolean): Promise<void> {
    try {
      const page = await this.api.runs({ status: "queued,running,waiting", limit: 100 });
      const current = new Map(page.items.map((run) => [run.id, run]));
      const updates = first ? [] : await this.compare(current);
      if (turn !== this.turns) return;
      if (updates.length) this.updates.set([...this.updates.get(), ...updates]);
      this.openRuns = current;
    } catch {
      // The server is unreachable: the next poll catches up.
    }
    if (turn === this.turns && (this.openRuns.size || first)) {
      this.cancelTimer = this.env.setTimer(POLL_INTERVAL_MS, () => void this.poll(turn, false));
    }
  }

  private async compare(current: ReadonlyMap<string, Run>): Promise<HiddenTabUpdate[]> {
    const updates: HiddenTabUpdate[] = [];
    for (const [id, before] of this.openRuns) {
      const after = current.get(id) ?? (await unlessMissing(this.api.run(id)));
      if (!after || after.status === before.status) continue;
      const kind = after.status === "waiting" ? "waits" : NOTED.includes(after.status) ? "ended" : null;
      if (kind && (await this.isNews(after))) updates.push({ run: after, kind });
    }
    return updates;
  }

  /** The rule of `_is_news` in engine/transactions/notifications.py. A deleted chat is missing. */
  private async isNews(run: Run): Promise<boolean> {
    if (run.lifetime !== "detached") return false;
    const session = await unlessMissing(this.api.session(run.session_id));
    return session !== null && session.settings?.keep !== false && session.settings?.source !== "openai";
  }
}

async function unlessMissing<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

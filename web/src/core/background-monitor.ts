// Polls the open runs while the tab is hidden and its streams are closed, to report which ended or need approval.

import type { Api } from "./api.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";
import type { Run } from "./types.ts";

export interface BackgroundUpdate {
  readonly run: Run;
  readonly kind: "ended" | "waits";
}

const POLL_INTERVAL_MS = 3000;

export class BackgroundMonitor {
  /** What happened since the tab was hidden; empty while it is visible. */
  readonly updates = new Store<readonly BackgroundUpdate[]>([]);
  private openRuns = new Map<string, Run>();
  private cancelTimer: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {
    env.onVisibilityChange(() => this.startOrStop());
  }

  private startOrStop(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
    if (!this.env.isHidden()) {
      this.openRuns.clear();
      this.updates.set([]);
      return;
    }
    void this.poll(true);
  }

  private async poll(first: boolean): Promise<void> {
    try {
      const page = await this.api.runs({ status: "queued,running,waiting", limit: 100 });
      if (!this.env.isHidden()) return;
      const current = new Map(page.items.map((run) => [run.id, run]));
      if (!first) await this.compare(current);
      this.openRuns = current;
    } catch {
      // The server is unreachable: the next poll catches up.
    }
    if (this.env.isHidden() && (this.openRuns.size || first)) {
      this.cancelTimer = this.env.setTimer(POLL_INTERVAL_MS, () => void this.poll(false));
    }
  }

  private async compare(current: ReadonlyMap<string, Run>): Promise<void> {
    const updates: BackgroundUpdate[] = [];
    for (const [id, before] of this.openRuns) {
      const after = current.get(id);
      if (!after) updates.push({ run: await this.api.run(id), kind: "ended" });
      else if (after.status === "waiting" && before.status !== "waiting") {
        updates.push({ run: after, kind: "waits" });
      }
    }
    if (updates.length) this.updates.set([...this.updates.get(), ...updates]);
  }
}

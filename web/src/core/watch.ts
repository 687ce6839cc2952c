// While the tab is hidden its streams are closed; a sparse look says whether a run ended or asks (U7).

import type { Api } from "./api.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";
import type { Run } from "./wire.ts";

export interface News {
  readonly run: Run;
  readonly what: "ended" | "asks";
}

const EVERY = 3000;

export class Watch {
  /** What happened while nobody looked; empty again when somebody does. */
  readonly news = new Store<readonly News[]>([]);
  private open = new Map<string, Run>();
  private takeBack: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {
    env.onVisibility(() => this.turn());
  }

  private turn(): void {
    this.takeBack?.();
    this.takeBack = null;
    if (!this.env.isHidden()) {
      this.open.clear();
      this.news.set([]);
      return;
    }
    void this.look(true);
  }

  private async look(first: boolean): Promise<void> {
    try {
      const page = await this.api.runs({ status: "queued,running,waiting", limit: 100 });
      if (!this.env.isHidden()) return;
      const now = new Map(page.items.map((run) => [run.id, run]));
      if (!first) await this.compare(now);
      this.open = now;
    } catch {
      // The server is away: the next look tells.
    }
    if (this.env.isHidden() && (this.open.size || first)) {
      this.takeBack = this.env.after(EVERY, () => void this.look(false));
    }
  }

  private async compare(now: ReadonlyMap<string, Run>): Promise<void> {
    const news: News[] = [];
    for (const [id, before] of this.open) {
      const after = now.get(id);
      if (!after) news.push({ run: await this.api.run(id), what: "ended" });
      else if (after.status === "waiting" && before.status !== "waiting") news.push({ run: after, what: "asks" });
    }
    if (news.length) this.news.set([...this.news.get(), ...news]);
  }
}

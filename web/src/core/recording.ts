// A run's journal, to be looked at: every event, and the message as it was after any of them.

import type { Env } from "./env.ts";
import { EMPTY, fold, isTerminal, type Transcript } from "./fold.ts";
import type { Frame } from "./sse.ts";
import { Store } from "./store.ts";
import { Follower, type Outcome } from "./stream.ts";
import type { Entry, JsonObject } from "./wire.ts";

export interface RecordingState {
  readonly entries: readonly Entry[];
  readonly outcome: Outcome | null;
}

const EVERY = 256;

export class Recording {
  readonly state = new Store<RecordingState>({ entries: [], outcome: null });
  private readonly follower: Follower;
  private readonly marks: Transcript[] = [EMPTY]; // after every 256 events
  private pending: Entry[] = [];
  private takeBack: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    runId: string,
  ) {
    this.follower = new Follower(env, {
      path: `/api/runs/${runId}/events`,
      cursor: () => String(this.count),
      take: (frames) => this.take(frames),
    });
    void this.follower.done.then((outcome) => {
      this.flush();
      this.state.patch({ outcome });
    });
  }

  private get count(): number {
    return this.state.get().entries.length + this.pending.length;
  }

  close(): void {
    this.takeBack?.();
    this.follower.stop();
  }

  /** The message as it was after `n` events. */
  at(n: number): Transcript {
    const { entries } = this.state.get();
    const from = Math.floor(n / EVERY);
    while (this.marks.length <= from) {
      const next = this.marks.length;
      this.marks.push(fold(entries.slice((next - 1) * EVERY, next * EVERY), this.marks[next - 1]));
    }
    return fold(entries.slice(from * EVERY, n), this.marks[from]);
  }

  private take(frames: Frame[]): boolean {
    let last = false;
    for (const frame of frames) {
      if (!frame.event || Number(frame.id) !== this.count + 1) continue;
      this.pending.push({ seq: Number(frame.id), type: frame.event, data: JSON.parse(frame.data) as JsonObject });
      last ||= isTerminal(frame.event);
    }
    if (last) this.flush();
    else this.takeBack ??= this.env.frame(() => this.flush());
    return last;
  }

  private flush(): void {
    this.takeBack?.();
    this.takeBack = null;
    if (!this.pending.length) return;
    this.state.patch({ entries: [...this.state.get().entries, ...this.pending] });
    this.pending = [];
  }

  /** The journal as lines of JSON, as `tests/fixtures` has them. */
  lines(): string {
    return this.state
      .get()
      .entries.map((entry) => `${JSON.stringify(entry)}\n`)
      .join("");
  }
}

// A run that is being watched: its transcript grows with the stream, at most once per painted frame.

import type { Env } from "./env.ts";
import { fold, isTerminal, type Transcript } from "./fold.ts";
import type { Frame } from "./sse.ts";
import { Follower, type Outcome } from "./stream.ts";
import type { Entry, JsonObject } from "./wire.ts";

export class LiveRun {
  private pending: Entry[] = [];
  private seen: number;
  private takeBack: (() => void) | null = null;
  private readonly follower: Follower;
  over: Outcome | null = null;

  constructor(
    private readonly env: Env,
    readonly runId: string,
    public transcript: Transcript,
    private readonly grown: () => void,
    ended: (outcome: Outcome) => void,
  ) {
    this.seen = transcript.lastSeq;
    this.follower = new Follower(env, {
      path: `/api/runs/${runId}/events`,
      cursor: () => String(this.seen),
      take: (frames) => this.take(frames),
    });
    void this.follower.done.then((outcome) => {
      this.flush();
      this.over = outcome;
      if (outcome !== "stopped") ended(outcome);
    });
  }

  stop(): void {
    this.takeBack?.();
    this.takeBack = null;
    this.follower.stop();
  }

  private take(frames: Frame[]): boolean {
    let last = false;
    for (const frame of frames) {
      const seq = Number(frame.id);
      if (!frame.event || seq <= this.seen) continue; // no event, or said twice
      if (seq !== this.seen + 1) throw new Error("a gap: come back with the cursor");
      this.pending.push({ seq, type: frame.event, data: JSON.parse(frame.data) as JsonObject });
      this.seen = seq;
      last ||= isTerminal(frame.event);
    }
    if (last) this.flush();
    else if (this.pending.length) this.takeBack ??= this.env.frame(() => this.flush());
    return last;
  }

  private flush(): void {
    this.takeBack?.();
    this.takeBack = null;
    if (!this.pending.length) return;
    const entries = this.pending;
    this.pending = [];
    this.transcript = fold(entries, this.transcript);
    this.grown();
  }
}

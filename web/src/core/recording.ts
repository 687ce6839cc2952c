// A run's whole journal for the flight recorder: every event, and the message as it was after any of them.

import type { Env } from "./env.ts";
import { EventStream, type StreamOutcome } from "./event-stream.ts";
import { EMPTY, fold, isTerminal, type Transcript } from "./fold.ts";
import { parseEvent } from "./live-run.ts";
import type { Frame } from "./sse-parser.ts";
import { Store } from "./store.ts";
import type { RunEvent } from "./types.ts";

export interface RecordingState {
  readonly events: readonly RunEvent[];
  readonly outcome: StreamOutcome | null;
}

const SNAPSHOT_INTERVAL = 256;

export class Recording {
  readonly state = new Store<RecordingState>({ events: [], outcome: null });
  private readonly stream: EventStream;
  private readonly snapshots: Transcript[] = [EMPTY]; // after every 256 events
  private pending: RunEvent[] = [];
  private cancelFlush: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    runId: string,
  ) {
    this.stream = new EventStream(env, {
      path: `/api/runs/${runId}/events`,
      cursor: () => String(this.count),
      onFrames: (frames) => this.receive(frames),
    });
    void this.stream.done.then((outcome) => {
      this.flush();
      this.state.patch({ outcome });
    });
  }

  private get count(): number {
    return this.state.get().events.length + this.pending.length;
  }

  close(): void {
    this.cancelFlush?.();
    this.stream.stop();
  }

  /** Returns the message as it was after `n` events. */
  at(n: number): Transcript {
    const { events } = this.state.get();
    const nearest = Math.floor(n / SNAPSHOT_INTERVAL);
    while (this.snapshots.length <= nearest) {
      const next = this.snapshots.length * SNAPSHOT_INTERVAL;
      this.snapshots.push(fold(events.slice(next - SNAPSHOT_INTERVAL, next), this.snapshots.at(-1)));
    }
    return fold(events.slice(nearest * SNAPSHOT_INTERVAL, n), this.snapshots[nearest]);
  }

  private receive(frames: Frame[]): boolean {
    let ended = false;
    for (const frame of frames) {
      if (!frame.event || Number(frame.id) !== this.count + 1) continue;
      this.pending.push(parseEvent(frame));
      ended ||= isTerminal(frame.event);
    }
    if (ended) this.flush();
    else this.cancelFlush ??= this.env.onNextFrame(() => this.flush());
    return ended;
  }

  private flush(): void {
    this.cancelFlush?.();
    this.cancelFlush = null;
    if (!this.pending.length) return;
    this.state.patch({ events: [...this.state.get().events, ...this.pending] });
    this.pending = [];
  }

  /** Returns the journal as JSON lines, in the format of `tests/fixtures`. */
  toJsonLines(): string {
    const { events } = this.state.get();
    return events.map((event) => `${JSON.stringify(event)}\n`).join("");
  }
}

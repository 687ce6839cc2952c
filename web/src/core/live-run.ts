// A run followed live: its transcript grows with the stream, at most once per painted frame. Reconnecting:
// `event-stream`; how events become parts: `fold`.

import type { Api } from "./api.ts";
import type { Env } from "./env.ts";
import { EventStream, type StreamOutcome } from "./event-stream.ts";
import { fold, isTerminal, type Transcript } from "./fold.ts";
import type { Frame } from "./sse-parser.ts";
import type { JsonObject, RunEvent } from "./types.ts";

export class LiveRun {
  private pending: RunEvent[] = [];
  private lastSeq: number;
  private cancelFlush: (() => void) | null = null;
  private readonly stream: EventStream;

  constructor(
    private readonly env: Env,
    private readonly runId: string,
    public transcript: Transcript,
    private readonly onGrow: () => void,
    onEnd: (outcome: StreamOutcome) => void,
  ) {
    this.lastSeq = transcript.lastSeq;
    this.stream = new EventStream(env, {
      path: `/api/runs/${runId}/events`,
      cursor: () => String(this.lastSeq),
      onFrames: (frames) => this.receive(frames),
    });
    void this.stream.done.then((outcome) => {
      this.flush();
      if (outcome !== "stopped") onEnd(outcome);
    });
  }

  stop(): void {
    this.cancelFlush?.();
    this.cancelFlush = null;
    this.stream.stop();
  }

  /** Reads what was said since, without the stream. */
  async poll(api: Api): Promise<void> {
    const { items } = await api.events(this.runId, this.lastSeq);
    this.take(items as RunEvent[]);
  }

  private receive(frames: Frame[]): boolean {
    return this.take(frames.filter((frame) => frame.event && Number(frame.id) > this.lastSeq).map(parseEvent));
  }

  private take(events: readonly RunEvent[]): boolean {
    let ended = false;
    for (const event of events) {
      if (event.seq <= this.lastSeq) continue; // a repeat
      if (event.seq !== this.lastSeq + 1)
        throw new Error(`Event ${event.seq} follows event ${this.lastSeq}: resume at the cursor.`);
      this.pending.push(event);
      this.lastSeq = event.seq;
      ended ||= isTerminal(event.type);
    }
    if (ended) this.flush();
    else if (this.pending.length) this.cancelFlush ??= this.env.onNextFrame(() => this.flush());
    return ended;
  }

  private flush(): void {
    this.cancelFlush?.();
    this.cancelFlush = null;
    if (!this.pending.length) return;
    const events = this.pending;
    this.pending = [];
    this.transcript = fold(events, this.transcript);
    this.onGrow();
  }
}

export function parseEvent(frame: Frame): RunEvent {
  return { seq: Number(frame.id), type: frame.event, data: JSON.parse(frame.data) as JsonObject };
}

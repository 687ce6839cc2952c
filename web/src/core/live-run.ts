// A run followed live: its transcript grows with the stream, at most once per painted frame.

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
    runId: string,
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

  private receive(frames: Frame[]): boolean {
    let ended = false;
    for (const frame of frames) {
      const seq = Number(frame.id);
      if (!frame.event || seq <= this.lastSeq) continue; // not an event, or a repeat
      if (seq !== this.lastSeq + 1)
        throw new Error(`Event ${seq} follows event ${this.lastSeq}: resume at the cursor.`);
      this.pending.push(parseEvent(frame));
      this.lastSeq = seq;
      ended ||= isTerminal(frame.event);
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

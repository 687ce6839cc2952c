// A server-sent event stream that reconnects by itself. EventSource cannot be used: it hides the response status and
// cannot be closed and resumed at a cursor of our choice.
//
// The stream runs until its last frame, until the server says that there is nothing more to follow, or until it is
// stopped. A lost connection, a silent one and an unreachable server are one case: reconnect at the cursor. Where the
// server answers and its streams do not arrive, `app.ts` falls back to polling. A hidden tab closes its connection and
// resumes when it is shown.

import { backoff, type Env, sleep } from "./env.ts";
import { type Frame, SseParser } from "./sse-parser.ts";

/** Why a stream ended. `cursor-ahead`: the server knows fewer events than we do. `pruned`: read the stored message. */
export type StreamOutcome = "ended" | "cursor-ahead" | "pruned" | "not-found" | "unauthorized" | "stopped";

export type ConnectionState = "open" | "lost";

export interface EventStreamOptions {
  path: string;
  /** The cursor to resume at; null starts with new events. */
  cursor(): string | null;
  /** Returns true after the last frame. If it throws, the stream reconnects at the cursor. */
  onFrames(frames: Frame[]): boolean;
  onStateChange?(state: ConnectionState): void;
}

/** The server sends a heartbeat every 15 s; two missed ones mean a dead connection. */
const SILENCE_LIMIT_MS = 40_000;
/** The server begins every stream with a comment; a proxy that holds back the first bytes holds back the rest too. */
const FIRST_BYTES_LIMIT_MS = 10_000;
const NEVER_MS = 2 ** 30;

const OUTCOME_BY_STATUS: Readonly<Record<number, StreamOutcome>> = {
  204: "ended",
  401: "unauthorized",
  404: "not-found",
  409: "cursor-ahead",
  410: "pruned",
  422: "cursor-ahead",
};

export class EventStream {
  private readonly stopping = new AbortController();
  private attempt = 0;
  private wake: (() => void) | null = null;
  private connection: AbortController | null = null;
  readonly done: Promise<StreamOutcome>;

  constructor(
    private readonly env: Env,
    private readonly options: EventStreamOptions,
  ) {
    const unsubscribe = [
      env.onVisibilityChange(() => this.handleVisibilityChange()),
      env.onOnline(() => this.retryNow()),
    ];
    this.done = this.run().finally(() => {
      for (const off of unsubscribe) off();
    });
  }

  stop(): void {
    this.stopping.abort();
    this.connection?.abort();
    this.wake?.();
  }

  /** A hidden tab releases its connection: browsers allow six per origin over all tabs. */
  private handleVisibilityChange(): void {
    if (this.env.isHidden()) this.connection?.abort();
    else this.retryNow();
  }

  private retryNow(): void {
    this.attempt = 0;
    this.wake?.();
  }

  private async run(): Promise<StreamOutcome> {
    while (!this.stopping.signal.aborted) {
      if (this.env.isHidden()) {
        await this.pause(NEVER_MS);
        continue;
      }
      const outcome = await this.connect();
      if (this.stopping.signal.aborted) break;
      if (typeof outcome === "string") return outcome;
      if (this.env.isHidden()) continue;
      this.options.onStateChange?.("lost");
      await this.pause(Math.max(outcome, backoff(this.attempt++, this.env.random)));
    }
    return "stopped";
  }

  /** Sleeps for `ms` or until woken. */
  private async pause(ms: number): Promise<void> {
    const woken = new AbortController();
    this.wake = () => woken.abort();
    if (this.stopping.signal.aborted) return;
    await sleep(this.env, ms, woken.signal);
    this.wake = null;
  }

  /** Returns the outcome, or the minimum delay in milliseconds before the next attempt. */
  private async connect(): Promise<StreamOutcome | number> {
    const connection = new AbortController();
    this.connection = connection;
    const startWatchdog = (ms: number) => this.env.setTimer(ms, () => connection.abort());
    let stopWatchdog = startWatchdog(FIRST_BYTES_LIMIT_MS);
    try {
      const cursor = this.options.cursor();
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (cursor !== null) headers["Last-Event-ID"] = cursor;
      const init: RequestInit = { headers, signal: connection.signal, cache: "no-store" };
      const response = await this.env.fetch(this.options.path, init);
      const outcome = OUTCOME_BY_STATUS[response.status];
      if (outcome) return outcome;
      if (response.status !== 200 || !response.body) return retryAfter(response);
      const reader = response.body.getReader();
      const parser = new SseParser();
      let open = false;
      while (true) {
        const { value, done } = await reader.read();
        if (done) return 0;
        stopWatchdog();
        stopWatchdog = startWatchdog(SILENCE_LIMIT_MS);
        if (!open) this.options.onStateChange?.("open");
        open = true;
        const frames = parser.push(value);
        if (!frames.length) continue;
        if (this.options.onFrames(frames)) return "ended";
        this.attempt = 0; // only now: frames that cannot be applied must not be fetched again at full speed
      }
    } catch {
      return 0; // connection lost, or a gap in the frames: resume at the cursor
    } finally {
      stopWatchdog();
      connection.abort();
      this.connection = null;
    }
  }
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("Retry-After"));
  return Number.isFinite(seconds) ? Math.min(seconds, 30) * 1000 : 0;
}

// A stream that heals: EventSource semantics over fetch, because EventSource can neither be told a status apart nor be
// closed and resumed at a cursor of our choice.
//
// `follow` runs until its stream has said everything, until the server says that there is nothing (more) to follow, or
// until it is stopped. A lost line, a silent line and a server that is away are all the same case: come back with the cursor.

import { backoff, type Env, sleep } from "./env.ts";
import { type Frame, Parser } from "./sse.ts";

/** Why a stream is over. `behind`: the server knows less than we do, read again. `pruned`: read the stored message. */
export type Outcome = "ended" | "behind" | "pruned" | "gone" | "login" | "stopped";

export type Line = "open" | "lost";

export interface Follow {
  path: string;
  /** The cursor to come back with; null: from now. */
  cursor(): string | null;
  /** True: that was the last frame. It may throw: then the line is opened again at the cursor. */
  take(frames: Frame[]): boolean;
  /** The line went up or down. */
  line?(state: Line): void;
  /** Each time the line is open, before its frames. */
  opened?(): void;
}

/** Two heartbeats of the server, and some. */
const SILENCE = 40_000;

const VERDICTS: Readonly<Record<number, Outcome>> = {
  204: "ended",
  401: "login",
  404: "gone",
  409: "behind",
  410: "pruned",
  422: "behind",
};

export class Follower {
  private readonly stopping = new AbortController();
  private attempt = 0;
  private wake: (() => void) | null = null;
  private connection: AbortController | null = null;
  private readonly unlisten: (() => void)[];
  readonly done: Promise<Outcome>;

  constructor(
    private readonly env: Env,
    private readonly what: Follow,
  ) {
    this.unlisten = [env.onVisibility(() => this.shownOrHidden()), env.onOnline(() => this.hurry())];
    this.done = this.run().finally(() => {
      for (const off of this.unlisten) off();
    });
  }

  stop(): void {
    this.stopping.abort();
    this.connection?.abort();
    this.wake?.();
  }

  /** A hidden tab gives its connection back: browsers allow six for all tabs together. */
  private shownOrHidden(): void {
    if (this.env.isHidden()) this.connection?.abort();
    else this.hurry();
  }

  private hurry(): void {
    this.attempt = 0;
    this.wake?.();
  }

  private async run(): Promise<Outcome> {
    while (!this.stopping.signal.aborted) {
      if (this.env.isHidden()) {
        await this.pause(null);
        continue;
      }
      const outcome = await this.connect();
      if (this.stopping.signal.aborted) break;
      if (typeof outcome === "string") return outcome;
      if (this.env.isHidden()) continue;
      this.what.line?.("lost");
      await this.pause(Math.max(outcome, backoff(this.attempt++, this.env.random)));
    }
    return "stopped";
  }

  /** Until somebody wakes us, or for so many milliseconds. */
  private async pause(ms: number | null): Promise<void> {
    const woken = new AbortController();
    this.wake = () => woken.abort();
    if (this.stopping.signal.aborted) return;
    await sleep(this.env, ms ?? 2 ** 30, woken.signal);
    this.wake = null;
  }

  /** The outcome, or the least number of milliseconds after which to try again. */
  private async connect(): Promise<Outcome | number> {
    const connection = new AbortController();
    this.connection = connection;
    let relax = this.env.after(SILENCE, () => connection.abort());
    try {
      const cursor = this.what.cursor();
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (cursor !== null) headers["Last-Event-ID"] = cursor;
      const answer = await this.env.fetch(this.what.path, { headers, signal: connection.signal, cache: "no-store" });
      const verdict = VERDICTS[answer.status];
      if (verdict) return verdict;
      if (answer.status !== 200 || !answer.body) return retryAfter(answer);
      this.what.line?.("open");
      this.what.opened?.();
      const reader = answer.body.getReader();
      const parser = new Parser();
      while (true) {
        const { value, done } = await reader.read();
        if (done) return 0;
        relax();
        relax = this.env.after(SILENCE, () => connection.abort());
        const frames = parser.push(value);
        if (!frames.length) continue;
        this.attempt = 0;
        if (this.what.take(frames)) return "ended";
      }
    } catch {
      return 0; // the line broke, or a frame did not fit: the cursor says where to go on
    } finally {
      relax();
      connection.abort();
      this.connection = null;
    }
  }
}

function retryAfter(answer: Response): number {
  const seconds = Number(answer.headers.get("Retry-After"));
  return Number.isFinite(seconds) ? Math.min(seconds, 30) * 1000 : 0;
}

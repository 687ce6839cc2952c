// One prompt to several models at once: one stream for all (U2, U6). Leaving it stops them all; Stop on a pane is a cancel.

import { type Api, Problem } from "./api.ts";
import type { Env } from "./env.ts";
import { EMPTY, fold, type Transcript } from "./fold.ts";
import { type Frame, Parser } from "./sse.ts";
import { Store } from "./store.ts";
import type { Entry, JsonObject } from "./wire.ts";

export interface Choice {
  readonly model?: string;
  readonly agent?: string;
}

export interface Pane {
  readonly choice: Choice;
  readonly runId: string | null;
  readonly sessionId: string | null;
  readonly transcript: Transcript;
  /** Milliseconds from the start. */
  readonly firstAt: number | null;
  readonly endedAt: number | null;
  readonly deltas: number;
}

export interface CompareState {
  readonly panes: readonly Pane[];
  readonly on: boolean;
  readonly problem: string | null;
}

export class Compare {
  readonly state = new Store<CompareState>({ panes: [], on: false, problem: null });
  private line: AbortController | null = null;
  private began = 0;
  private pending = new Map<string, Entry[]>();
  private takeBack: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {}

  async start(input: string, choices: readonly Choice[]): Promise<void> {
    this.leave();
    const line = new AbortController();
    this.line = line;
    this.began = this.env.now();
    this.state.set({ panes: choices.map(empty), on: true, problem: null });
    try {
      const answer = await this.env.fetch("/api/compare", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ runs: choices.map((choice) => ({ input, ...choice })) }),
        signal: line.signal,
      });
      if (!answer.ok || !answer.body) throw await refusal(answer);
      await this.read(answer.body);
    } catch (error) {
      if (line.signal.aborted) return;
      const problem =
        error instanceof Problem ? error.message : "The line to the server was lost; the panes were stopped.";
      this.state.patch({ problem });
    }
    this.flush();
    if (this.line === line) await this.settle();
  }

  /** Leaving stops what is still going on. */
  leave(): void {
    this.line?.abort();
    this.line = null;
    this.takeBack?.();
    this.takeBack = null;
    this.pending.clear();
  }

  stop = (runId: string) => this.api.cancel(runId).catch(() => undefined);
  stopAll(): void {
    for (const pane of this.state.get().panes) {
      if (pane.runId && pane.transcript.status === "streaming") void this.stop(pane.runId);
    }
  }

  /** The chosen one goes on as a normal session. All of them began in the archive, so that comparing fills no list. */
  choose = (sessionId: string) => this.api.patchSession(sessionId, { archived: false });

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader();
    const parser = new Parser();
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const frame of parser.push(value)) this.take(frame);
      if (this.pending.size) this.takeBack ??= this.env.frame(() => this.flush());
    }
  }

  private take(frame: Frame): void {
    if (!frame.event) return;
    const data = JSON.parse(frame.data) as JsonObject;
    if (frame.event === "compare.started") {
      const runs = data.runs as unknown as { run_id: string; session_id: string }[];
      const { panes } = this.state.get();
      this.state.patch({
        panes: panes.map((pane, n) => ({
          ...pane,
          runId: runs[n]?.run_id ?? null,
          sessionId: runs[n]?.session_id ?? null,
        })),
      });
      void this.putAway(runs.map((run) => run.session_id));
      return;
    }
    const run = String(data.run_id);
    const entries = this.pending.get(run) ?? [];
    entries.push({ seq: Number(data.seq), type: frame.event, data });
    this.pending.set(run, entries);
  }

  private async putAway(sessions: readonly string[]): Promise<void> {
    for (const sid of sessions) await this.api.patchSession(sid, { archived: true }).catch(() => undefined);
  }

  private flush(): void {
    this.takeBack = null;
    const now = this.env.now() - this.began;
    const { panes } = this.state.get();
    const grown = panes.map((pane) => {
      const entries = pane.runId === null ? undefined : this.pending.get(pane.runId);
      return entries ? grow(pane, entries, now) : pane;
    });
    this.pending.clear();
    this.state.patch({ panes: grown });
  }

  /** The stream is over: what did not end in it is read from the store. */
  private async settle(): Promise<void> {
    const panes = await Promise.all(this.state.get().panes.map((pane) => this.stored(pane)));
    this.state.patch({ panes, on: false });
    this.line = null;
  }

  private async stored(pane: Pane): Promise<Pane> {
    if (pane.transcript.status !== "streaming" || pane.sessionId === null) return pane;
    try {
      const { items } = await this.api.messages(pane.sessionId);
      const last = items.at(-1);
      if (last?.role !== "assistant" || last.status === "streaming") return pane;
      const { parts, status, reason, error, usage, last_seq } = last;
      return {
        ...pane,
        transcript: { parts, status, reason, error, usage, approval: null, thinkingSince: null, lastSeq: last_seq },
      };
    } catch {
      return pane;
    }
  }
}

const empty = (choice: Choice): Pane => ({
  choice,
  runId: null,
  sessionId: null,
  transcript: EMPTY,
  firstAt: null,
  endedAt: null,
  deltas: 0,
});

function grow(pane: Pane, entries: Entry[], now: number): Pane {
  const transcript = fold(entries, pane.transcript);
  const deltas = entries.filter((entry) => entry.type.endsWith(".delta")).length;
  return {
    ...pane,
    transcript,
    deltas: pane.deltas + deltas,
    firstAt: pane.firstAt ?? (deltas ? now : null),
    endedAt: transcript.status === "streaming" ? null : now,
  };
}

async function refusal(answer: Response): Promise<Problem> {
  const told = (await answer.json().catch(() => ({}))) as { type?: string; detail?: string };
  return new Problem(answer.status, told.type ?? "error", told.detail ?? `The server answered ${answer.status}.`);
}

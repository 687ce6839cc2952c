// One prompt sent to several models over one stream (U2, U6). Leaving stops all runs; Stop on a pane cancels its run.

import { type Api, ApiError, toApiError } from "./api.ts";
import type { Env } from "./env.ts";
import { EMPTY, fold, type Transcript } from "./fold.ts";
import { type Frame, SseParser } from "./sse-parser.ts";
import { Store } from "./store.ts";
import type { JsonObject, RunEvent } from "./types.ts";

export interface Choice {
  readonly model?: string;
  readonly agent?: string;
}

export interface Pane {
  readonly choice: Choice;
  readonly runId: string | null;
  readonly sessionId: string | null;
  readonly transcript: Transcript;
  /** Milliseconds from the start to the first token, and to the end. */
  readonly firstTokenMs: number | null;
  readonly endMs: number | null;
  readonly deltas: number;
}

export interface ComparisonState {
  readonly panes: readonly Pane[];
  readonly running: boolean;
  readonly problem: string | null;
}

type StartedData = { readonly runs: readonly { readonly run_id: string; readonly session_id: string }[] };

export class Comparison {
  readonly state = new Store<ComparisonState>({ panes: [], running: false, problem: null });
  private connection: AbortController | null = null;
  private startedAt = 0;
  private readonly pending = new Map<string, RunEvent[]>();
  private cancelFlush: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {}

  async start(input: string, choices: readonly Choice[]): Promise<void> {
    this.leave();
    const connection = new AbortController();
    this.connection = connection;
    this.startedAt = this.env.now();
    this.state.set({ panes: choices.map(emptyPane), running: true, problem: null });
    try {
      const response = await this.env.fetch("/api/compare", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ runs: choices.map((choice) => ({ input, ...choice })) }),
        signal: connection.signal,
      });
      if (!response.ok || !response.body) throw await toApiError(response);
      await this.read(response.body);
    } catch (error) {
      if (connection.signal.aborted) return;
      const problem = error instanceof ApiError ? error.message : "Connection lost. The answers were stopped.";
      this.state.patch({ problem });
    }
    this.flush();
    if (this.connection === connection) await this.finish();
  }

  /** Closes the stream, which stops all runs still in progress. */
  leave(): void {
    this.connection?.abort();
    this.connection = null;
    this.cancelFlush?.();
    this.cancelFlush = null;
    this.pending.clear();
  }

  stop = (runId: string) => this.api.cancel(runId).catch(() => undefined);
  stopAll(): void {
    for (const pane of this.state.get().panes) {
      if (pane.runId && pane.transcript.status === "streaming") void this.stop(pane.runId);
    }
  }

  /** Moves the chosen session from the archive, where all of them start, to the list. */
  choose = (sessionId: string) => this.api.patchSession(sessionId, { archived: false });

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader();
    const parser = new SseParser();
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const frame of parser.push(value)) this.receive(frame);
      if (this.pending.size) this.cancelFlush ??= this.env.onNextFrame(() => this.flush());
    }
  }

  private receive(frame: Frame): void {
    if (!frame.event) return;
    if (frame.event === "compare.started") return this.assignRuns(JSON.parse(frame.data) as StartedData);
    const data = JSON.parse(frame.data) as JsonObject;
    const runId = String(data.run_id);
    const events = this.pending.get(runId) ?? [];
    events.push({ seq: Number(data.seq), type: frame.event, data });
    this.pending.set(runId, events);
  }

  private assignRuns({ runs }: StartedData): void {
    const { panes } = this.state.get();
    this.state.patch({
      panes: panes.map((pane, n) => ({
        ...pane,
        runId: runs[n]?.run_id ?? null,
        sessionId: runs[n]?.session_id ?? null,
      })),
    });
    void this.archive(runs.map((run) => run.session_id));
  }

  /** Keeps comparisons out of the session list. */
  private async archive(sessionIds: readonly string[]): Promise<void> {
    for (const id of sessionIds) await this.api.patchSession(id, { archived: true }).catch(() => undefined);
  }

  private flush(): void {
    this.cancelFlush = null;
    const elapsed = this.env.now() - this.startedAt;
    const panes = this.state.get().panes.map((pane) => {
      const events = pane.runId === null ? undefined : this.pending.get(pane.runId);
      return events ? applyEvents(pane, events, elapsed) : pane;
    });
    this.pending.clear();
    this.state.patch({ panes });
  }

  /** Reads runs that did not end within the stream from the store. */
  private async finish(): Promise<void> {
    const { connection } = this;
    const panes = await Promise.all(this.state.get().panes.map((pane) => this.readStored(pane)));
    if (this.connection !== connection) return; // another comparison has begun meanwhile
    this.state.patch({ panes, running: false });
    this.connection = null;
  }

  private async readStored(pane: Pane): Promise<Pane> {
    if (pane.transcript.status !== "streaming" || pane.sessionId === null) return pane;
    try {
      const { items } = await this.api.messages(pane.sessionId);
      const last = items.at(-1);
      if (last?.role !== "assistant" || last.status === "streaming") return pane;
      const { parts, status, reason, error, usage, last_seq } = last;
      return { ...pane, transcript: { ...EMPTY, parts, status, reason, error, usage, lastSeq: last_seq } };
    } catch {
      return pane;
    }
  }
}

const emptyPane = (choice: Choice): Pane => ({
  choice,
  runId: null,
  sessionId: null,
  transcript: EMPTY,
  firstTokenMs: null,
  endMs: null,
  deltas: 0,
});

function applyEvents(pane: Pane, events: readonly RunEvent[], elapsed: number): Pane {
  const transcript = fold(events, pane.transcript);
  const deltas = events.filter((event) => event.type.endsWith(".delta")).length;
  return {
    ...pane,
    transcript,
    deltas: pane.deltas + deltas,
    firstTokenMs: pane.firstTokenMs ?? (deltas ? elapsed : null),
    endMs: transcript.status === "streaming" ? null : elapsed,
  };
}

// One prompt sent to several models over one stream. Leaving stops all runs; Stop on a pane cancels its run.
// Each pane is a session whose settings name the comparison and the vote; it is a chat once it is continued.

import { type Api, ApiError, errorMessage, isMissing, toApiError } from "./api.ts";
import { type Env, sleep } from "./env.ts";
import { EMPTY, fold, type Transcript } from "./fold.ts";
import { type Frame, SseParser } from "./sse-parser.ts";
import { Store } from "./store.ts";
import type { Decision, InputAnswer, JsonObject, Message, RunEvent, Session } from "./types.ts";

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

/** What the settings of a session say about its comparison. */
export interface ComparisonLabel {
  readonly id: string;
  readonly blind: boolean;
  readonly best?: boolean;
  /** All its sessions, in the order of the panes, once one of them is a chat and no longer in the list. */
  readonly members?: readonly string[];
}

export interface ComparisonState {
  readonly id: string;
  /** The prompt of an earlier comparison. */
  readonly prompt: string;
  readonly panes: readonly Pane[];
  readonly blind: boolean;
  /** The pane with the best answer, once it is picked. */
  readonly best: number | null;
  readonly running: boolean;
  readonly problem: string | null;
}

const NOTHING: ComparisonState = {
  id: "",
  prompt: "",
  panes: [],
  blind: false,
  best: null,
  running: false,
  problem: null,
};
/** How often a run that was stopped by a reload is read again until it has ended. */
const MAX_READS = 20;
const READ_PAUSE_MS = 500;

type StartedData = { readonly runs: readonly { readonly run_id: string; readonly session_id: string }[] };

export class Comparison {
  readonly state = new Store<ComparisonState>(NOTHING);
  private connection: AbortController | null = null;
  private startedAt = 0;
  private readonly pending = new Map<string, RunEvent[]>();
  private cancelFlush: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
  ) {}

  async start(input: string, choices: readonly Choice[], blind = false): Promise<void> {
    this.leave();
    const connection = new AbortController();
    this.connection = connection;
    this.startedAt = this.env.now();
    const comparison = { id: this.env.newId(), blind };
    this.state.set({ ...NOTHING, ...comparison, panes: choices.map(emptyPane), running: true });
    try {
      const response = await this.env.fetch("/api/compare", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ runs: choices.map((choice) => ({ input, ...choice })), comparison }),
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

  /** Shows an earlier comparison. */
  async restore(sessionIds: readonly string[]): Promise<void> {
    this.leave();
    const connection = new AbortController();
    this.connection = connection;
    this.state.set({ ...NOTHING, running: true });
    try {
      const sessions = await this.readSessions(sessionIds);
      const panes = await Promise.all(sessions.map((session) => this.restorePane(session, connection.signal)));
      if (connection.signal.aborted) return;
      const labels = sessions.map(labelOf);
      const best = labels.findIndex((label) => label?.best);
      const { id = "", blind = false } = labels.find((label) => label !== null) ?? {};
      const prompt = panes.find((pane) => pane.prompt)?.prompt ?? "";
      this.state.set({ ...NOTHING, id, prompt, blind, best: best < 0 ? null : best, panes });
    } catch (error) {
      if (!connection.signal.aborted) this.state.set({ ...NOTHING, problem: errorMessage(error) });
    }
  }

  /** Leaves out sessions that were deleted, unless all were. */
  private async readSessions(ids: readonly string[]): Promise<Session[]> {
    const results = await Promise.allSettled(ids.map((id) => this.api.session(id)));
    const found = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const failed = results.find((result) => result.status === "rejected" && !isMissing(result.reason)) ?? results[0];
    if (failed?.status === "rejected" && (!found.length || !isMissing(failed.reason))) throw failed.reason;
    return found;
  }

  clear(): void {
    this.leave();
    this.state.set(NOTHING);
  }

  async decide(runId: string, approvalId: string, decision: Decision, option?: string): Promise<boolean> {
    try {
      await this.api.decide(runId, approvalId, decision, option);
      return true;
    } catch (error) {
      this.state.patch({ problem: errorMessage(error) });
      return false;
    }
  }

  async answerInput(runId: string, id: string, answer: InputAnswer): Promise<boolean> {
    try {
      await this.api.answerInput(runId, id, answer);
      return true;
    } catch (error) {
      this.state.patch({ problem: errorMessage(error) });
      return false;
    }
  }

  /** Stores the vote in the settings of the session, and shows it once it is stored. */
  async vote(position: number): Promise<void> {
    const { id, blind, panes } = this.state.get();
    const sessionId = panes[position]?.sessionId;
    if (!sessionId) return;
    try {
      const { settings } = await this.api.session(sessionId);
      const comparison = { id, blind, best: true };
      await this.api.patchSession(sessionId, { settings: { ...settings, comparison } });
      if (this.state.get().id === id) this.state.patch({ best: position });
    } catch (error) {
      this.state.patch({ problem: errorMessage(error) });
    }
  }

  /** Makes the session of a pane a chat. The others name it, so that the comparison can be shown whole again. */
  async choose(sessionId: string): Promise<void> {
    const { settings } = await this.api.session(sessionId);
    const { source: _, ...kept } = settings ?? {};
    await this.api.patchSession(sessionId, { settings: kept });
    const members = this.state.get().panes.flatMap((pane) => pane.sessionId ?? []);
    for (const id of members.filter((member) => member !== sessionId)) {
      const other = await this.api.session(id);
      const comparison = { ...labelOf(other), members };
      await this.api.patchSession(id, { settings: { ...other.settings, comparison } });
    }
  }

  /** Makes the session of a pane a chat, and resumes an answer that did not end by itself there. */
  async continuePane({ sessionId, runId, transcript }: Pane): Promise<void> {
    if (sessionId === null) return;
    await this.choose(sessionId);
    if (runId !== null && isUnfinished(transcript)) await this.api.continueRun(runId, this.env.newId());
  }

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
      return { ...pane, transcript: storedTranscript(last) };
    } catch {
      return pane;
    }
  }

  private async restorePane(session: Session, signal: AbortSignal): Promise<Pane & { prompt: string }> {
    for (let read = 1; ; read++) {
      const { items } = await this.api.messages(session.id);
      const answer = items.find((message) => message.role === "assistant");
      const asked = items.find((message) => message.role === "user")?.parts ?? [];
      const prompt = asked.map((part) => (part.type === "text" ? part.text : "")).join("");
      const pane = { ...emptyPane(choiceOf(session, answer)), sessionId: session.id, prompt };
      if (!answer) return { ...pane, transcript: { ...EMPTY, status: "interrupted" } };
      const shown = { ...pane, runId: answer.run_id, transcript: storedTranscript(answer) };
      if (answer.status !== "streaming" || read === MAX_READS || signal.aborted) return shown;
      await sleep(this.env, READ_PAUSE_MS, signal);
    }
  }
}

/** Whether the answer was stopped or broke off, as when the page was left. */
export const isUnfinished = ({ status }: Transcript): boolean => status !== "complete" && status !== "streaming";

export function labelOf({ settings }: Session): ComparisonLabel | null {
  const label = (settings as { comparison?: ComparisonLabel } | null)?.comparison;
  return typeof label?.id === "string" ? label : null;
}

function storedTranscript({ parts, status, reason, error, usage, last_seq }: Message): Transcript {
  return { ...EMPTY, parts, status, reason, error, usage, lastSeq: last_seq };
}

function choiceOf(session: Session, answer: Message | undefined): Choice {
  const model = session.model ?? answer?.model;
  return model ? { model } : { agent: session.agent };
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

// One open session: what the server shows of it, overlaid with the runs that are being watched here.

import type { Api, Problem } from "./api.ts";
import type { Env } from "./env.ts";
import { EMPTY, same, type Transcript } from "./fold.ts";
import { LiveRun } from "./live.ts";
import type { Outbox } from "./outbox.ts";
import { inputOf } from "./outbox.ts";
import { Latest, Store } from "./store.ts";
import type { ApprovalRequest, Decision, FilePart, Json, Message, Session } from "./wire.ts";

export interface Shown extends Message {
  readonly approval: ApprovalRequest | null;
}

export interface ThreadState {
  readonly sid: string;
  readonly session: Session | null;
  readonly messages: readonly Shown[];
  /** Cursor to older messages. */
  readonly older: string | null;
  readonly loadingOlder: boolean;
  readonly loaded: boolean;
  readonly missing: boolean;
  readonly stopping: string | null;
  /** What was asked and could not be done, in a sentence. */
  readonly problem: string | null;
}

const PAGE = 50;
/** How often output that is still being recovered is looked for; each look is an attempt of the server too (J2). */
const RECOVERY = 3000;

export class Thread {
  readonly state: Store<ThreadState>;
  private readonly live = new Map<string, LiveRun>();
  private readonly latest = new Latest(() => this.load());
  private closed = false;
  private recovering: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly outbox: Outbox,
    readonly sid: string,
  ) {
    this.state = new Store<ThreadState>({
      sid,
      session: null,
      messages: [],
      older: null,
      loadingOlder: false,
      loaded: false,
      missing: false,
      stopping: null,
      problem: null,
    });
  }

  refresh = (): Promise<void> => (this.closed ? Promise.resolve() : this.latest.run());

  /** It was deleted, here or elsewhere: there is nothing left to read. */
  gone(): void {
    this.close();
    this.state.patch({ missing: true, loaded: true });
  }

  close(): void {
    this.closed = true;
    this.recovering?.();
    for (const run of this.live.values()) run.stop();
    this.live.clear();
  }

  // ---- reading ----

  private async load(): Promise<void> {
    try {
      const [session, page] = await Promise.all([this.api.session(this.sid), this.api.messages(this.sid, null, PAGE)]);
      if (!this.closed) this.show(session, page.items, page.next);
    } catch (error) {
      if (this.closed) return;
      const problem = error as Problem;
      if (problem.status === 404) this.state.patch({ missing: true, loaded: true });
      // Anything else: the banner says so, and the feed refreshes us when the line is back.
    }
  }

  private show(session: Session, newest: readonly Message[], next: string | null): void {
    const before = this.state.get();
    const known = new Map(before.messages.map((message) => [message.id, message]));
    const shown = newest.map((message) => keep(known.get(message.id), this.overlay(message)));
    const kept = olderThan(before.messages, shown[0]);
    const stopping = before.stopping === session.active_run ? before.stopping : null;
    this.state.set({
      ...before,
      session,
      messages: [...kept.messages, ...shown],
      older: kept.messages.length ? before.older : next,
      loaded: true,
      missing: false,
      stopping,
    });
    const keys = [...newest, ...session.queued_runs.map((queued) => queued.message)].map((m) => m.idempotency_key);
    this.outbox.seen(new Set(keys.filter((key) => key !== null)));
    this.watch();
    this.lookForRecovered();
  }

  private lookForRecovered(): void {
    this.recovering?.();
    this.recovering = null;
    if (!this.state.get().messages.some((message) => message.recovery?.state === "pending")) return;
    this.recovering = this.env.after(RECOVERY, () => {
      if (this.env.isHidden()) this.lookForRecovered();
      else void this.refresh();
    });
  }

  /** What we have seen of an open run, when it is at least as much as the server just said. */
  private overlay(message: Message): Shown {
    const live = message.run_id === null ? undefined : this.live.get(message.run_id);
    if (message.status !== "streaming" || !live || live.transcript.lastSeq < message.last_seq) {
      return { ...message, approval: null };
    }
    return told(message, live.transcript);
  }

  private watch(): void {
    const { messages } = this.state.get();
    const open = new Set<string>();
    for (const message of messages) {
      if (message.run_id === null || message.role !== "assistant") continue;
      if (message.status === "streaming") {
        open.add(message.run_id);
        if (!this.live.has(message.run_id)) this.live.set(message.run_id, this.start(message.run_id, message));
      }
    }
    for (const [id, run] of this.live) {
      if (open.has(id)) continue;
      run.stop();
      this.live.delete(id);
    }
  }

  private start(runId: string, message: Message): LiveRun {
    // The id of an open question is in the journal alone: a run that waits is read from its beginning.
    const asks = message.parts.some((part) => part.type === "tool" && part.state === "waiting");
    const base: Transcript = asks
      ? EMPTY
      : { ...EMPTY, parts: message.parts, usage: message.usage, lastSeq: message.last_seq };
    return new LiveRun(
      this.env,
      runId,
      base,
      () => this.grow(runId),
      (outcome) => {
        if (outcome !== "ended") this.live.delete(runId);
        // The stored message is the truth of a run that has ended; it may take a moment to be there.
        if (outcome === "ended") void this.refresh();
        this.env.after(1000, () => void this.refresh());
      },
    );
  }

  private grow(runId: string): void {
    const live = this.live.get(runId);
    if (!live) return;
    const { messages } = this.state.get();
    const at = messages.findLastIndex((message) => message.run_id === runId && message.role === "assistant");
    const old = messages[at];
    if (old?.status !== "streaming" || live.transcript.lastSeq < old.last_seq) return;
    this.state.patch({ messages: messages.with(at, told(old, live.transcript)) });
  }

  loadOlder = async (): Promise<void> => {
    const { older, loadingOlder } = this.state.get();
    if (older === null || loadingOlder) return;
    this.state.patch({ loadingOlder: true });
    try {
      const page = await this.api.messages(this.sid, older, PAGE);
      const { messages } = this.state.get();
      const have = new Set(messages.map((message) => message.id));
      const fresh = page.items.filter((message) => !have.has(message.id)).map((message) => this.overlay(message));
      this.state.patch({ messages: [...fresh, ...messages], older: page.next });
    } catch {
      // Scrolling there again tries again.
    } finally {
      this.state.patch({ loadingOlder: false });
    }
  };

  // ---- acting ----

  private async act<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      const result = await work();
      this.state.patch({ problem: null });
      await this.refresh();
      return result;
    } catch (error) {
      this.state.patch({ problem: (error as Problem).message });
      void this.refresh();
      return null;
    }
  }

  forgetProblem = () => this.state.patch({ problem: null });

  stop = async (): Promise<void> => {
    const run = this.state.get().session?.active_run;
    if (!run) return;
    this.state.patch({ stopping: run });
    await this.act(() => this.api.cancel(run));
  };
  retry = (mid: string, model?: string) => this.act(() => this.api.retry(this.sid, mid, this.env.newId(), model));
  edit = (mid: string, text: string, files: readonly FilePart[]) =>
    this.act(() => this.api.edit(this.sid, mid, inputOf(text, files), this.env.newId()));
  continueRun = (rid: string) => this.act(() => this.api.continueRun(rid, this.env.newId()));
  recover = (rid: string) => this.act(() => this.api.recover(rid));
  decide = (rid: string, aid: string, decision: Decision) => this.act(() => this.api.decide(rid, aid, decision));
  switchTo = (mid: string) => this.act(() => this.api.patchSession(this.sid, { head: mid }));
  fork = (mid: string) => this.act(() => this.api.fork(this.sid, mid));
  undo = () => this.act(() => this.api.act(this.sid, "undo"));
  redo = () => this.act(() => this.api.act(this.sid, "redo"));
  compact = () => this.act(() => this.api.act(this.sid, "compact"));
  cancelQueued = (rid: string) => this.act(() => this.api.cancel(rid));
  editQueued = (rid: string, text: string) => this.act(() => this.api.editQueued(rid, text));
  patch = (fields: { [name: string]: Json }) => this.act(() => this.api.patchSession(this.sid, fields));
}

function told(message: Message, transcript: Transcript): Shown {
  return {
    ...message,
    parts: transcript.parts,
    status: transcript.status,
    reason: transcript.reason,
    error: transcript.error,
    usage: transcript.usage,
    last_seq: transcript.lastSeq,
    approval: transcript.approval,
  };
}

/** The old value where it says the same: views compare by identity. */
function keep(old: Shown | undefined, fresh: Shown): Shown {
  return old && same(old as unknown as Json, fresh as unknown as Json) ? old : fresh;
}

/** What was read of the same branch before the newest page. */
function olderThan(messages: readonly Shown[], first: Shown | undefined): { messages: readonly Shown[] } {
  if (!first || first.parent_id === null) return { messages: [] };
  const at = messages.findIndex((message) => message.id === first.parent_id);
  return { messages: at < 0 ? [] : messages.slice(0, at + 1) };
}

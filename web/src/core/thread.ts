// One open session (chat thread): the server's messages, overlaid with the runs that are followed live. Unsent messages
// are in `outbox`, text that is being typed in `drafts`.

import { type Api, ApiError, errorMessage, problemOf } from "./api.ts";
import type { EditAnswerRequest, UpdateSessionRequest } from "./api-types.ts";
import type { Env } from "./env.ts";
import { deepEqual, EMPTY, type Transcript } from "./fold.ts";
import { LiveRun } from "./live-run.ts";
import { inputOf, type Outbox } from "./outbox.ts";
import { CoalescedTask, Store } from "./store.ts";
import type {
  ApprovalRequest,
  Decision,
  FilePart,
  InputAnswer,
  InputRequest,
  Message,
  RetryNotice,
  Session,
} from "./types.ts";

export type ThreadMessage = Message & {
  readonly approval: ApprovalRequest | null;
  readonly input: InputRequest | null;
  readonly retrying: RetryNotice | null;
};

export interface ThreadState {
  readonly sid: string;
  readonly session: Session | null;
  readonly messages: readonly ThreadMessage[];
  /** The cursor of the next older page. */
  readonly older: string | null;
  readonly loadingOlder: boolean;
  readonly olderFailed: boolean;
  readonly loaded: boolean;
  /** Why the chat could not be loaded the last time. */
  readonly unloaded: string | null;
  readonly notFound: boolean;
  /** The run that was asked to stop. */
  readonly stopping: string | null;
  /** Why the last action failed. */
  readonly problem: string | null;
}

/** What becomes of a message while an answer is active: it waits, is added to the answer, or takes its place. */
export type SendMode = "queue" | "steer" | "interrupt";

const PAGE_SIZE = 50;
/** The largest page, for messages that are far up. */
const FIND_PAGE_SIZE = 200;
const MAX_PAGES_TO_FIND = 100;
/** So that the title of a branch is no longer than the server allows. */
const MAX_BRANCH_TITLE = 180;
/** How often output in recovery is read again; each read makes the server try too. */
const RECOVERY_POLL_MS = 3000;

export class Thread {
  readonly state: Store<ThreadState>;
  private readonly live = new Map<string, LiveRun>();
  private readonly reload = new CoalescedTask(() => this.load());
  private readonly acting = new Set<string>();
  private readonly keys = new Map<string, string>();
  private loadingOlder: Promise<void> | null = null;
  private closed = false;
  private cancelRecoveryPoll: (() => void) | null = null;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly outbox: Outbox,
    readonly sid: string,
    private readonly defaultModel: (project: string | null | undefined) => string | null = () => null,
    /** Whether an agent runs as a program, which has a model of its own. */
    private readonly isProgram: (agent: string) => boolean = () => false,
  ) {
    this.state = new Store<ThreadState>({
      sid,
      session: null,
      messages: [],
      older: null,
      loadingOlder: false,
      olderFailed: false,
      loaded: false,
      unloaded: null,
      notFound: false,
      stopping: null,
      problem: null,
    });
  }

  refresh = (): Promise<void> => (this.closed ? Promise.resolve() : this.reload.run());

  /** Reads the events of open runs while their streams do not arrive: only they have a question's id. */
  pollLive(): void {
    for (const run of this.live.values()) run.poll(this.api).catch(() => undefined); // the next poll tries again
  }

  /** Handles the deletion of the session, here or elsewhere. */
  markDeleted(): void {
    this.close();
    this.state.patch({ notFound: true, loaded: true });
  }

  close(): void {
    this.closed = true;
    this.cancelRecoveryPoll?.();
    for (const run of this.live.values()) run.stop();
    this.live.clear();
  }

  // ---- reading ----

  private async load(): Promise<void> {
    try {
      const [session, page] = await Promise.all([
        this.api.session(this.sid),
        this.api.messages(this.sid, null, PAGE_SIZE),
      ]);
      if (!this.closed) this.show(session, page.items, page.next);
    } catch (error) {
      if (this.closed) return;
      if (error instanceof ApiError && error.status === 404) this.state.patch({ notFound: true, loaded: true });
      else this.state.patch({ unloaded: errorMessage(error) }); // the feed refreshes on reconnect
    }
  }

  private show(session: Session, newest: readonly Message[], next: string | null): void {
    const before = this.state.get();
    const known = new Map(before.messages.map((message) => [message.id, message]));
    const shown = newest.map((message) => reuse(known.get(message.id), this.overlay(message)));
    const older = olderThan(before.messages, shown[0]);
    const stopping = before.stopping === session.active_run ? before.stopping : null;
    this.state.set({
      ...before,
      session,
      messages: [...older, ...shown],
      older: older.length ? before.older : next,
      loaded: true,
      unloaded: null,
      notFound: false,
      stopping,
    });
    const keys = [...newest, ...session.queued_runs.map((queued) => queued.message)].map((m) => m.idempotency_key);
    this.outbox.confirm(new Set([...keys.filter((key) => key !== null), ...this.outbox.addedKeys(this.sid)]));
    this.followOpenRuns();
    this.pollRecovery();
  }

  private pollRecovery(): void {
    this.cancelRecoveryPoll?.();
    this.cancelRecoveryPoll = null;
    if (!this.state.get().messages.some((message) => message.recovery?.state === "pending")) return;
    this.cancelRecoveryPoll = this.env.setTimer(RECOVERY_POLL_MS, () => {
      if (this.env.isHidden()) this.pollRecovery();
      else void this.refresh();
    });
  }

  /** Prefers the live transcript of an open run unless the server's message is newer. */
  private overlay(message: Message): ThreadMessage {
    const live = message.run_id === null ? undefined : this.live.get(message.run_id);
    if (message.status !== "streaming" || !live || live.transcript.lastSeq < message.last_seq) {
      return { ...message, approval: null, input: null, retrying: null };
    }
    return withTranscript(message, live.transcript);
  }

  private followOpenRuns(): void {
    const { messages } = this.state.get();
    const open = new Set<string>();
    for (const message of messages) {
      if (message.run_id === null || message.role !== "assistant") continue;
      if (message.status === "streaming") {
        open.add(message.run_id);
        if (!this.live.has(message.run_id)) this.live.set(message.run_id, this.follow(message.run_id, message));
      }
    }
    for (const [id, run] of this.live) {
      if (open.has(id)) continue;
      run.stop();
      this.live.delete(id);
    }
  }

  private follow(runId: string, message: Message): LiveRun {
    // Only the journal has the id of a pending approval, the question of a running tool, and why nothing was said yet:
    // such runs are read from their beginning.
    const waiting = message.parts.some((part) => part.type === "tool" && ["waiting", "running"].includes(part.state));
    const base: Transcript =
      waiting || !message.parts.length
        ? EMPTY
        : { ...EMPTY, parts: message.parts, usage: message.usage, lastSeq: message.last_seq };
    return new LiveRun(
      this.env,
      runId,
      base,
      () => this.updateLive(runId),
      (outcome) => {
        if (outcome !== "ended") this.live.delete(runId);
        // The stored message is the truth of an ended run; it may take a moment to be settled.
        if (outcome === "ended") void this.refresh();
        this.env.setTimer(1000, () => void this.refresh());
      },
    );
  }

  private updateLive(runId: string): void {
    const live = this.live.get(runId);
    if (!live) return;
    const { messages } = this.state.get();
    const at = messages.findLastIndex((message) => message.run_id === runId && message.role === "assistant");
    const old = messages[at];
    if (old?.status !== "streaming" || live.transcript.lastSeq < old.last_seq) return;
    this.state.patch({ messages: messages.with(at, withTranscript(old, live.transcript)) });
  }

  loadOlder = (limit = PAGE_SIZE): Promise<void> => {
    this.loadingOlder ??= this.loadOlderPage(limit).finally(() => {
      this.loadingOlder = null;
    });
    return this.loadingOlder;
  };

  private async loadOlderPage(limit: number): Promise<void> {
    const { older } = this.state.get();
    if (older === null) return;
    this.state.patch({ loadingOlder: true });
    try {
      const page = await this.api.messages(this.sid, older, limit);
      const { messages, older: current } = this.state.get();
      if (current !== older) return; // another branch is shown meanwhile
      const have = new Set(messages.map((message) => message.id));
      const fresh = page.items.filter((message) => !have.has(message.id)).map((message) => this.overlay(message));
      this.state.patch({ messages: [...fresh, ...messages], older: page.next, olderFailed: false });
    } catch {
      this.state.patch({ olderFailed: true }); // the button retries
    } finally {
      this.state.patch({ loadingOlder: false });
    }
  }

  /** Loads older messages until this one is there. Returns false if it is not on the shown branch, or too far up. */
  async find(mid: string): Promise<boolean> {
    const isThere = () => this.state.get().messages.some((message) => message.id === mid);
    for (let page = 0; page < MAX_PAGES_TO_FIND && !isThere(); page++) {
      if (this.state.get().older === null) break;
      await this.loadOlder(FIND_PAGE_SIZE);
      if (this.state.get().olderFailed) break;
    }
    return isThere();
  }

  // ---- acting ----

  private withModel(): { model?: string } {
    return this.model ? { model: this.model } : {};
  }

  private async act<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      const result = await work();
      this.state.patch({ problem: null });
      await this.refresh();
      return result;
    } catch (error) {
      this.state.patch({ problem: errorMessage(error) });
      void this.refresh();
      return null;
    }
  }

  /**
   * Does something that adds a branch or a chat: a second click does it no second time, and after a failure the same key is used
   * again, because the server may have done it.
   */
  private async actOnce<T>(name: string, work: (key: string) => Promise<T>): Promise<T | null> {
    if (this.acting.has(name)) return null;
    this.acting.add(name);
    const key = this.keys.get(name) ?? this.env.newId();
    this.keys.set(name, key);
    const result = await this.act(() => work(key));
    this.acting.delete(name);
    if (result !== null) this.keys.delete(name);
    return result;
  }

  /** The model that the page shows. Messages are sent with its name, so that no other model answers. */
  get model(): string | undefined {
    const { session } = this.state.get();
    if (session && this.isProgram(session.agent)) return undefined;
    return session?.model ?? this.defaultModel(session?.project) ?? undefined;
  }

  /** Sends a message. An earlier problem is none of it. */
  send(text: string, files: readonly FilePart[], how: SendMode = "queue"): void {
    this.dismissProblem();
    const run = this.state.get().session?.active_run;
    const steers = how === "steer" && run && !files.length ? { steers: run } : {};
    const interrupts = how === "interrupt" ? { interrupts: true } : {};
    this.outbox.add(this.sid, { text, files, model: this.model, ...steers, ...interrupts });
  }

  reportProblem = (problem: string) => this.state.patch({ problem });
  dismissProblem = () => this.state.patch({ problem: null });

  stop = async (): Promise<void> => {
    const { session, stopping } = this.state.get();
    const run = session?.active_run;
    if (!run || stopping === run) return;
    this.state.patch({ stopping: run });
    const stopped = await this.act(() => this.api.cancel(run));
    if (!stopped) this.state.patch({ stopping: null }); // the button can be pressed again
  };
  /** With `model`, another one than the chat's answers this time. */
  retry = (mid: string, model?: string) => {
    const body = { message_id: mid, ...this.withModel(), ...(model ? { model } : {}) };
    return this.actOnce(`retry ${JSON.stringify(body)}`, (key) => this.api.retry(this.sid, body, key));
  };
  edit = (mid: string, text: string, files: readonly FilePart[]) => {
    const body = { message_id: mid, input: inputOf(text, files), ...this.withModel() };
    return this.actOnce(`edit ${JSON.stringify(body)}`, (key) => this.api.edit(this.sid, body, key));
  };
  /** Changes the text of an answer, in a version of its own. */
  editAnswer = (body: EditAnswerRequest) =>
    this.actOnce(`edit answer ${JSON.stringify(body)}`, (key) =>
      this.api.post<Message>(`/api/sessions/${this.sid}/edit-answer`, body, key),
    );
  continueRun = (rid: string) => this.actOnce(`continue ${rid}`, (key) => this.api.continueRun(rid, key));
  /** Continues a run whose agent denied these calls because nobody answered in time, and allows them. */
  allowAndContinue = (rid: string, calls: readonly string[]) =>
    this.actOnce(`allow ${rid}`, (key) => this.api.continueRun(rid, key, calls));
  recover = (rid: string) => this.act(() => this.api.recover(rid));
  decide = (rid: string, aid: string, decision: Decision, option?: string) =>
    this.act(() => this.api.decide(rid, aid, decision, option));
  answerInput = (rid: string, id: string, answer: InputAnswer) => this.act(() => this.api.answerInput(rid, id, answer));
  switchBranch = (mid: string) => this.act(() => this.api.patchSession(this.sid, { head: mid }));
  fork = (mid: string) =>
    this.actOnce(`fork ${mid}`, async (key) => {
      const session = await this.api.fork(this.sid, mid, key);
      if (!session.title) return session;
      const title = `${session.title.slice(0, MAX_BRANCH_TITLE)} (branch)`;
      return this.api.patchSession(session.id, { title }).catch(() => session); // the branch is there anyway
    });
  undo = () => this.act(() => this.api.undo(this.sid));
  redo = () => this.act(() => this.api.redo(this.sid));
  compact = () => this.act(() => this.api.compact(this.sid));
  cancelQueued = (rid: string) => this.act(() => this.api.cancel(rid));
  editQueued = (rid: string, text: string, files: readonly FilePart[]) =>
    this.act(() => this.api.editQueued(rid, inputOf(text, files)));
  patch = (fields: UpdateSessionRequest) => this.act(() => this.api.patchSession(this.sid, fields));
  /** Changes the chat, and returns why it could not be changed, for those who show it where it was tried. */
  tryPatch = (fields: UpdateSessionRequest): Promise<string | null> =>
    problemOf(this.api.patchSession(this.sid, fields).then(this.refresh));
}

function withTranscript(message: Message, transcript: Transcript): ThreadMessage {
  return {
    ...message,
    parts: transcript.parts,
    status: transcript.status,
    reason: transcript.reason,
    error: transcript.error,
    usage: transcript.usage,
    model: message.model ?? transcript.model,
    last_seq: transcript.lastSeq,
    approval: transcript.approval,
    input: transcript.input,
    retrying: transcript.retrying,
  };
}

/** Returns the old value if it is equal: views compare by identity. */
function reuse(old: ThreadMessage | undefined, fresh: ThreadMessage): ThreadMessage {
  return old && deepEqual(old, fresh) ? old : fresh;
}

/** Returns the messages already loaded before `first`, if they are on the same branch. */
function olderThan(messages: readonly ThreadMessage[], first: ThreadMessage | undefined): readonly ThreadMessage[] {
  if (!first || first.parent_id === null) return [];
  const at = messages.findIndex((message) => message.id === first.parent_id);
  return at < 0 ? [] : messages.slice(0, at + 1);
}

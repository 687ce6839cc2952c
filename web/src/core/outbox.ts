// Messages sent but not confirmed as stored. Each has a storage entry of its own, which all tabs see; one tab delivers
// it, and another takes over if that tab is closed. Idempotency keys make repeating safe, also that of creating the
// session of a new chat. The messages of a chat are sent one after the other, in the order in which they were typed.

import { type Api, ApiError, errorMessage } from "./api.ts";
import type { CreateSessionRequest, MessageInput, SentDraftRequest } from "./api-types.ts";
import { NEW_CHAT } from "./drafts.ts";
import { backoff, type Env, sleep } from "./env.ts";
import { Store } from "./store.ts";
import type { FilePart, Session } from "./types.ts";

export interface Outgoing {
  readonly key: string;
  /** null: the first message of a chat that the server has not created yet. */
  readonly sid: string | null;
  /** The fields of the chat to create. */
  readonly chat?: CreateSessionRequest;
  readonly text: string;
  readonly files: readonly FilePart[];
  readonly model?: string | undefined;
  /** The draft that it was written as. */
  readonly draft?: SentDraftRequest;
  readonly at: string;
  readonly state: "sending" | "stored" | "refused";
  readonly problem: string | null;
  /** The active run that the text is added to. */
  readonly steers?: string;
  /** Whether the active run is stopped for it. */
  readonly interrupts?: boolean;
  /** Whether the run is to be canceled as soon as its id is known. */
  readonly stopping?: boolean;
  /** The run that answers it, once it is stored. */
  readonly runId?: string;
}

/** What a message contains, the model that is to answer it, and what it does to the active run. */
export type OutgoingContent = Pick<Outgoing, "text" | "files" | "model" | "steers" | "interrupts">;

export interface OutboxListener {
  onSessionCreated(session: Session, firstMessage: string): void;
  onStored(sid: string): void;
}

const PREFIX = "holdfast.outbox.";
/** The entry of versions that kept all messages in one. */
const SHARED_ENTRY = "holdfast.outbox";

export class Outbox {
  readonly state: Store<readonly Outgoing[]>;
  /** Ends the delivery of a message, or the wait for another tab's. */
  private readonly deliveries = new Map<string, () => void>();

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly listener: OutboxListener,
    /** The versions of stored drafts, see `Drafts`. */
    private readonly saved: ReadonlyMap<string, number> = new Map(),
  ) {
    this.state = new Store(this.readAll());
    env.onStorageChange((key, value) => {
      if (key.startsWith(PREFIX)) this.adopt(key.slice(PREFIX.length), parse(value));
    });
  }

  /** Resumes what was being sent when a page was closed or reloaded. */
  resume(): void {
    for (const item of this.state.get()) if (item.state === "sending") this.startDelivery(item.key);
  }

  add(sid: string, content: OutgoingContent): string {
    return this.put({ sid, ...content });
  }

  /** Sends the first message of a new chat. */
  addChat(chat: CreateSessionRequest, content: OutgoingContent): string {
    return this.put({ sid: null, chat, ...content });
  }

  private put(content: Pick<Outgoing, "sid" | "chat"> & OutgoingContent): string {
    const key = this.env.newId();
    const at = new Date(this.env.now()).toISOString();
    const chat = content.sid ?? NEW_CHAT;
    const version = this.saved.get(chat);
    const draft = version === undefined ? {} : { draft: { session_id: chat, version } };
    const item: Outgoing = { key, ...content, ...draft, at, state: "sending", problem: null };
    this.state.set([...this.state.get(), item]);
    this.write(item);
    this.startDelivery(key);
    return key;
  }

  resend(key: string): void {
    this.change(key, { state: "sending", problem: null });
    this.startDelivery(key);
  }

  discard(key: string): void {
    this.endDelivery(key);
    this.removeEntry(key);
    this.state.set(this.state.get().filter((item) => item.key !== key));
  }

  /** Cancels the runs of a chat's messages that no thread shows yet, now or as soon as the server has accepted them. */
  async stop(sent: readonly Outgoing[]): Promise<void> {
    for (const { key, state, runId } of sent) {
      if (state === "refused") continue;
      this.change(key, { stopping: true });
      if (runId) await this.cancelRun(key, runId);
    }
  }

  /** Removes messages that the server now returns. */
  confirm(keys: ReadonlySet<string>): void {
    const left = this.state.get().filter((item) => !keys.has(item.key));
    if (left.length === this.state.get().length) return;
    for (const key of keys) {
      this.endDelivery(key);
      this.removeEntry(key);
    }
    this.state.set(left);
  }

  /** The keys of texts that were added to a run, which no message of the chat has once the run has read them. */
  addedKeys(sid: string): string[] {
    const added = this.state.get().filter((item) => item.sid === sid && item.state === "stored" && item.steers);
    return added.map(({ key }) => key);
  }

  find = (key: string) => this.state.get().find((item) => item.key === key);

  private change(key: string, fields: Partial<Outgoing>): void {
    this.state.set(this.state.get().map((item) => (item.key === key ? { ...item, ...fields } : item)));
    const item = this.find(key);
    if (item) this.write(item);
  }

  // ---- delivering ----

  /** Only one tab delivers a message at a time, where the browser can tell. */
  private startDelivery(key: string): void {
    this.endDelivery(key);
    const resign = this.env.electLeader(PREFIX + key, () => {
      const stopped = new AbortController();
      void this.deliver(key, stopped.signal).finally(() => {
        if (!stopped.signal.aborted) this.endDelivery(key);
      });
      return () => stopped.abort();
    });
    this.deliveries.set(key, resign);
  }

  private endDelivery(key: string): void {
    const resign = this.deliveries.get(key);
    this.deliveries.delete(key);
    resign?.();
  }

  private async deliver(key: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      await this.waitForEarlier(key, signal);
      const item = this.find(key);
      if (item?.state !== "sending" || signal.aborted) return;
      try {
        return await this.send(item);
      } catch (error) {
        const problem = errorMessage(error);
        if (!(error instanceof ApiError) || !error.isTransient) return this.change(key, { state: "refused", problem });
        this.change(key, { problem });
      }
      await sleep(this.env, backoff(attempt, this.env.random), signal);
    }
  }

  /** Waits until the earlier messages of the chat are stored, refused or discarded, in whichever tab. */
  private waitForEarlier(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        const items = this.state.get();
        const at = items.findIndex((item) => item.key === key);
        const item = items[at];
        const earlier = items
          .slice(0, Math.max(0, at))
          .filter((other) => other.sid !== null && other.sid === item?.sid);
        const blocking = earlier.find((other) => other.state === "sending");
        if (!blocking || signal.aborted) {
          unsubscribe();
          signal.removeEventListener("abort", look);
          resolve();
        } else if (blocking.problem !== null && item?.problem === null) this.change(key, { problem: blocking.problem });
      };
      const unsubscribe = this.state.subscribe(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  private async send(item: Outgoing): Promise<void> {
    const { key } = item;
    let { sid } = item;
    if (sid === null) {
      const session = await this.api.createSession(item.chat ?? {}, key);
      sid = session.id;
      this.change(key, { sid });
      this.listener.onSessionCreated(session, item.text);
    }
    const { run } = await this.sendTo(sid, item);
    this.change(key, { state: "stored", problem: null, runId: run.id });
    if (this.find(key)?.stopping) await this.cancelRun(key, run.id);
    this.listener.onStored(sid);
  }

  private sendTo(sid: string, { key, text, files, model, draft, steers, interrupts }: Outgoing) {
    const sent = draft ? { draft } : {};
    if (steers !== undefined) return this.api.steer(steers, { text, ...sent }, key);
    const body = {
      input: inputOf(text, files),
      ...sent,
      ...(model ? { model } : {}),
      ...(interrupts ? { on_busy: "interrupt" as const } : {}),
    };
    return this.api.send(sid, body, key);
  }

  private async cancelRun(key: string, runId: string): Promise<void> {
    try {
      await this.api.cancel(runId);
    } catch {
      this.change(key, { stopping: false }); // the button can be pressed again
    }
  }

  // ---- storage ----

  /** Takes over what another tab did to a message. */
  private adopt(key: string, item: Outgoing | null): void {
    const mine = this.find(key);
    if (item === null) {
      this.endDelivery(key);
      // A stored message stays until the thread that shows it has loaded the server's.
      if (mine && mine.state !== "stored") this.state.set(this.state.get().filter((other) => other !== mine));
    } else if (!mine) {
      this.state.set([...this.state.get(), item]);
    } else this.state.set(this.state.get().map((other) => (other === mine ? item : other)));
    if (item?.state === "sending" && !this.deliveries.has(key)) this.startDelivery(key);
    else if (item && item.state !== "sending") this.endDelivery(key);
  }

  private readAll(): Outgoing[] {
    const { storage } = this.env;
    if (!storage) return [];
    this.splitSharedEntry();
    const keys = Array.from({ length: storage.length }, (_, n) => storage.key(n) ?? "");
    const items = keys.filter((key) => key.startsWith(PREFIX)).map((key) => parse(storage.getItem(key)));
    // The server returns stored ones before anything is shown.
    return items
      .filter((item) => item !== null)
      .filter((item) => item.state !== "stored")
      .sort((a, b) => a.at.localeCompare(b.at));
  }

  private splitSharedEntry(): void {
    try {
      const items = JSON.parse(this.env.storage?.getItem(SHARED_ENTRY) ?? "[]") as Outgoing[];
      for (const item of items) if (item.state !== "stored") this.write(item);
      this.env.storage?.removeItem(SHARED_ENTRY);
    } catch {
      // Not readable: there is nothing to keep.
    }
  }

  /** A stored message leaves the storage, after other tabs have seen that it is stored and not discarded. */
  private write(item: Outgoing): void {
    try {
      this.env.storage?.setItem(PREFIX + item.key, JSON.stringify(item));
    } catch {
      // Storage is full or disabled: unsent messages do not survive a reload.
    }
    if (item.state === "stored") this.removeEntry(item.key);
  }

  private removeEntry(key: string): void {
    this.env.storage?.removeItem(PREFIX + key);
  }
}

function parse(text: string | null): Outgoing | null {
  try {
    return JSON.parse(text ?? "null") as Outgoing | null;
  } catch {
    return null;
  }
}

/** Builds the API's `input` from text and files. */
export function inputOf(text: string, files: readonly FilePart[]): MessageInput {
  if (!files.length) return text;
  const attached = files.map(({ file_id }) => ({ type: "file", file_id }) as const);
  return text.trim() ? [...attached, { type: "text", text }] : attached;
}

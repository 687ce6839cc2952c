// Messages sent but not confirmed as stored. They survive a reload; the idempotency key makes resending safe.

import { type Api, ApiError, errorMessage } from "./api.ts";
import type { MessageInput } from "./api-types.ts";
import { backoff, type Env, sleep } from "./env.ts";
import { Store } from "./store.ts";
import type { FilePart } from "./types.ts";

export interface Outgoing {
  readonly key: string;
  readonly sid: string;
  readonly text: string;
  readonly files: readonly FilePart[];
  readonly at: string;
  readonly state: "sending" | "stored" | "refused";
  readonly problem: string | null;
}

const STORAGE_KEY = "holdfast.outbox";

export class Outbox {
  readonly state: Store<readonly Outgoing[]>;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly onStored: (sid: string) => void,
  ) {
    this.state = new Store(this.read());
    this.state.subscribe(() => this.write());
  }

  /** Resumes what was being sent when the page was closed or reloaded. */
  resume(): void {
    for (const item of this.state.get()) if (item.state === "sending") void this.deliver(item.key);
  }

  add(sid: string, text: string, files: readonly FilePart[]): string {
    const key = this.env.newId();
    const at = new Date(this.env.now()).toISOString();
    this.state.set([...this.state.get(), { key, sid, text, files, at, state: "sending", problem: null }]);
    void this.deliver(key);
    return key;
  }

  resend(key: string): void {
    this.change(key, { state: "sending", problem: null });
    void this.deliver(key);
  }

  discard(key: string): void {
    this.state.set(this.state.get().filter((item) => item.key !== key));
  }

  /** Removes messages that the server now returns. */
  confirm(keys: ReadonlySet<string>): void {
    const left = this.state.get().filter((item) => !keys.has(item.key));
    if (left.length !== this.state.get().length) this.state.set(left);
  }

  private find = (key: string) => this.state.get().find((item) => item.key === key);

  private change(key: string, fields: Partial<Outgoing>): void {
    this.state.set(this.state.get().map((item) => (item.key === key ? { ...item, ...fields } : item)));
  }

  private async deliver(key: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const item = this.find(key);
      if (item?.state !== "sending") return;
      try {
        await this.api.send(item.sid, { input: inputOf(item.text, item.files) }, key);
        this.change(key, { state: "stored", problem: null });
        this.onStored(item.sid);
        return;
      } catch (error) {
        const problem = errorMessage(error);
        if (!(error instanceof ApiError) || !error.isTransient) {
          this.change(key, { state: "refused", problem });
          return;
        }
        this.change(key, { problem });
      }
      await sleep(this.env, backoff(attempt, this.env.random), new AbortController().signal);
    }
  }

  private read(): Outgoing[] {
    try {
      const items = JSON.parse(this.env.storage?.getItem(STORAGE_KEY) ?? "[]") as Outgoing[];
      // The server returns stored ones before anything is shown.
      return items.filter((item) => item.state !== "stored");
    } catch {
      return [];
    }
  }

  private write(): void {
    try {
      const items = this.state.get();
      if (items.length) this.env.storage?.setItem(STORAGE_KEY, JSON.stringify(items));
      else this.env.storage?.removeItem(STORAGE_KEY);
    } catch {
      // Storage is full or disabled: unsent messages do not survive a reload.
    }
  }
}

/** Builds the API's `input` from text and files. */
export function inputOf(text: string, files: readonly FilePart[]): MessageInput {
  if (!files.length) return text;
  const attached = files.map(({ file_id }) => ({ type: "file", file_id }) as const);
  return text.trim() ? [...attached, { type: "text", text }] : attached;
}

// Keeps the draft of a chat the same on all devices. The server stores its text with a version: a tab that has not seen
// the newest one cannot overwrite it. The copy in this browser (`drafts`) is for when the server is away. Not part of
// the first load.

import { type Api, ApiError } from "./api.ts";
import type { DraftResponse } from "./api-types.ts";
import { type Drafts, NEW_CHAT, STORED_PREFIX } from "./drafts.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";

type Stored = Pick<DraftResponse, "text" | "version">;

/** How long text waits to be saved, while somebody types as well as after. */
const SAVE_DELAY_MS = 1500;
/** The server takes no longer ones. */
const MAX_CHARACTERS = 100_000;

export const isShared = (draftId: string): boolean => draftId === NEW_CHAT || draftId.startsWith("ses_");

export class DraftSync {
  /** The text of another device that differs from what was typed here: somebody has to choose. */
  readonly other = new Store<string | null>(null);
  /** What the server is known to have. */
  private seen: Stored | null;
  private newest: Stored | null = null;
  private reads = true;
  private working = false;
  private cancelTimer: (() => void) | null = null;
  private closed = false;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly drafts: Drafts,
    private readonly chat: string,
    private text: string,
    /** Shows the text of another device. */
    private readonly show: (text: string) => void,
  ) {
    this.seen = this.recall();
    this.unsubscribe = drafts.onWrite((id, { text }) => id === chat && text !== this.text && this.change(text));
  }

  /** Reads what other devices have typed. */
  read(): void {
    this.reads = true;
    void this.work();
  }

  private change(text: string): void {
    this.text = text;
    this.markSaved();
    this.cancelTimer ??= this.env.setTimer(SAVE_DELAY_MS, () => this.save());
  }

  save(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
    // What was sent is cleared by the server.
    if (this.text === "") this.reads = true;
    void this.work();
  }

  choose(which: "mine" | "other"): void {
    const other = this.newest;
    if (!other) return;
    this.remember(other);
    this.other.set(null);
    if (which === "other") this.adopt(other);
    else this.save();
  }

  close(): void {
    this.unsubscribe();
    if (this.cancelTimer) this.save();
    this.closed = true;
  }

  private async work(): Promise<void> {
    if (this.working || this.closed) return;
    this.working = true;
    try {
      for (let more = true; more; ) {
        if (this.reads || !this.seen) {
          this.reads = false;
          this.meet(await this.api.get<DraftResponse>(this.path));
        }
        more = await this.write();
      }
    } catch (error) {
      // The server is away, or does not have the chat any more: the copy in this browser stays.
      if (!(error instanceof ApiError)) throw error;
    } finally {
      this.working = false;
      this.markSaved();
    }
  }

  /** Saves the text if that is needed and allowed. Returns whether there is more to do. */
  private async write(): Promise<boolean> {
    const { text, seen } = this;
    if (!seen || this.other.get() !== null || text === seen.text || text.length > MAX_CHARACTERS) return false;
    if (this.cancelTimer && !this.closed) return false; // more is being typed
    this.drafts.saved.set(this.chat, seen.version);
    try {
      const headers = { "If-Match": `"${seen.version}"` };
      this.remember(await this.api.call<DraftResponse>("PUT", this.path, { text }, headers));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412) throw error;
      this.reads = true;
    }
    return true;
  }

  /** Decides between the text of the server and the one here. */
  private meet(stored: Stored): void {
    const { text, seen } = this;
    this.other.set(null);
    if (text === stored.text) return this.remember(stored);
    if (text === (seen?.text ?? "")) {
      this.remember(stored);
      return this.adopt(stored);
    }
    // Nobody else has typed anything: the text here is the newer one.
    if (stored.text === "" || stored.text === seen?.text) return this.remember(stored);
    this.newest = stored;
    this.other.set(stored.text);
  }

  private adopt({ text }: Stored): void {
    if (this.closed) return;
    this.text = text;
    this.show(text);
  }

  private get path(): string {
    return `/api/drafts/${this.chat}`;
  }

  /** Notes which version sending would clear, if there is or soon may be anything to clear. */
  private markSaved(): void {
    const { seen } = this;
    if (seen?.text) this.drafts.saved.set(this.chat, seen.version);
    else if (!this.working) this.drafts.saved.delete(this.chat);
  }

  private remember({ text, version }: Stored): void {
    this.seen = { text, version };
    this.markSaved();
    try {
      const key = STORED_PREFIX + this.chat;
      for (const storage of [this.env.tabStorage, this.env.storage]) {
        if (text) storage?.setItem(key, JSON.stringify(this.seen));
        else storage?.removeItem(key);
      }
    } catch {
      // Storage is full or disabled: what is typed here counts as newer after a reload.
    }
  }

  private recall(): Stored | null {
    try {
      const key = STORED_PREFIX + this.chat;
      return JSON.parse(this.env.tabStorage?.getItem(key) ?? this.env.storage?.getItem(key) ?? "null") as Stored | null;
    } catch {
      return null;
    }
  }
}

// Chats that were deleted and can still be brought back. They are hidden at once; the server deletes them when the time
// is over, when the page is left, or at the next start. Other tabs of the browser hide them too, and delete them only if
// the tab in which they were deleted did not.

import { type Api, ApiError, errorMessage } from "./api.ts";
import type { Env } from "./env.ts";

export interface DeletionListener {
  onHidden(sid: string): void;
  /** It is no longer about to be deleted. */
  onShown(sid: string): void;
  onDeleted(sid: string): void;
  onFailed(problem: string): void;
}

interface Entry {
  /** Whether its memories are deleted too. */
  readonly forget: boolean;
  /** When it is deleted, in milliseconds since the epoch. */
  readonly at: number;
}

const PREFIX = "holdfast.deleting.";
/** A little longer than its confirmation is shown. */
const UNDO_MS = 9000;
/** How much longer than the tab of a deletion another one waits. */
const OTHER_TAB_MS = 3000;

export class PendingDeletions {
  /** Those of this tab. */
  private readonly entries = new Map<string, Entry>();
  private readonly timers = new Map<string, () => void>();

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly listener: DeletionListener,
  ) {
    env.onStorageChange((key, value) => {
      if (!key.startsWith(PREFIX)) return;
      const sid = key.slice(PREFIX.length);
      const entry = value === null ? null : parseEntry(value);
      if (entry) this.schedule(sid, entry, OTHER_TAB_MS);
      else this.release(sid);
    });
    env.onPageHide(() => this.flush());
  }

  /** Goes on with what an earlier page left. What another tab is about to delete can still be undone there. */
  resume(): void {
    const { storage } = this.env;
    const keys = Array.from({ length: storage?.length ?? 0 }, (_, n) => storage?.key(n) ?? "");
    for (const key of keys.filter((key) => key.startsWith(PREFIX))) {
      const sid = key.slice(PREFIX.length);
      const entry = parseEntry(storage?.getItem(key) ?? "");
      if (entry === null) this.store(sid, null);
      else this.schedule(sid, entry, entry.at > this.env.now() ? OTHER_TAB_MS : 0);
    }
  }

  add(sids: readonly string[], forget: boolean): void {
    for (const sid of sids) {
      const entry = { forget, at: this.env.now() + UNDO_MS };
      this.store(sid, entry);
      this.entries.set(sid, entry);
      this.schedule(sid, entry);
    }
  }

  undo(sids: readonly string[]): void {
    for (const sid of sids) {
      this.store(sid, null);
      this.release(sid);
    }
  }

  private schedule(sid: string, entry: Entry, extraMs = 0): void {
    this.timers.get(sid)?.();
    const wait = Math.max(0, entry.at + extraMs - this.env.now());
    this.timers.set(
      sid,
      this.env.setTimer(wait, () => void this.delete(sid, entry.forget)),
    );
    this.listener.onHidden(sid);
  }

  private release(sid: string): void {
    this.end(sid);
    this.listener.onShown(sid);
  }

  private end(sid: string): void {
    this.timers.get(sid)?.();
    this.timers.delete(sid);
    this.entries.delete(sid);
  }

  private async delete(sid: string, forget: boolean): Promise<void> {
    const problem = await this.api.deleteSession(sid, forget).then(
      () => null,
      (error) => (error instanceof ApiError && error.status === 404 ? null : errorMessage(error)),
    );
    this.store(sid, null);
    this.end(sid);
    if (problem === null) return this.listener.onDeleted(sid);
    this.listener.onShown(sid);
    this.listener.onFailed(`The chat was not deleted. ${problem}`);
  }

  /** Deletes at once, because nobody can undo it any more. The next start looks whether that worked. */
  private flush(): void {
    for (const [sid, { forget }] of this.entries) {
      this.store(sid, { forget, at: this.env.now() });
      this.api.deleteOnLeave(sid, forget);
    }
  }

  private store(sid: string, entry: Entry | null): void {
    try {
      if (entry) this.env.storage?.setItem(PREFIX + sid, JSON.stringify(entry));
      else this.env.storage?.removeItem(PREFIX + sid);
    } catch {
      // Storage is full or disabled: it is deleted when the time is over or the page is left.
    }
  }
}

/** Returns null if the text is damaged. */
function parseEntry(text: string): Entry | null {
  try {
    const entry = JSON.parse(text) as Partial<Entry> | null;
    return typeof entry?.at === "number" ? { forget: entry.forget === true, at: entry.at } : null;
  } catch {
    return null;
  }
}

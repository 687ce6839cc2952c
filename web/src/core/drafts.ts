// Unsent messages, one per session. They survive a reload. Each tab has its own; the newest of all tabs is what a
// tab without one shows, so that closing a tab loses nothing. Discarded when sent (ui/chat/Composer.tsx) or with a deleted
// chat (App.discardUnsent).

import type { Env } from "./env.ts";
import type { FilePart } from "./types.ts";

export interface Draft {
  readonly text: string;
  readonly files: readonly FilePart[];
}

const PREFIX = "holdfast.draft.";
/** What the server had of a draft when it was last read or saved (`draft-sync`). */
export const STORED_PREFIX = "holdfast.stored-draft.";
/** The key of the draft of a chat that does not exist yet. */
export const NEW_CHAT = "new";
export const NO_DRAFT: Draft = { text: "", files: [] };

/** The key of the draft of a change to a sent message. */
export const editDraft = (messageId: string): string => `edit.${messageId}`;

export class Drafts {
  /** The versions of the drafts that the server has, by chat: sending a message clears its draft. */
  readonly saved = new Map<string, number>();
  private readonly listeners = new Map<string, Set<(draft: Draft) => void>>();
  private readonly writeListeners = new Set<(sessionId: string, draft: Draft) => void>();

  constructor(private readonly env: Env) {}

  read(sessionId: string): Draft {
    try {
      const key = PREFIX + sessionId;
      const saved = this.env.tabStorage?.getItem(key) ?? this.env.storage?.getItem(key) ?? "null";
      return (JSON.parse(saved) as Draft | null) ?? NO_DRAFT;
    } catch {
      return NO_DRAFT;
    }
  }

  /** The ids of the sessions that have a draft, at most `limit`. */
  sessionIds(limit: number): string[] {
    const { storage } = this.env;
    if (!storage) return [];
    return Array.from({ length: storage.length }, (_, n) => storage.key(n) ?? "")
      .filter((key) => key.startsWith(`${PREFIX}ses_`))
      .slice(0, limit)
      .map((key) => key.slice(PREFIX.length));
  }

  move(from: string, to: string): void {
    const draft = this.read(from);
    if (!draft.text && !draft.files.length) return;
    this.write(to, draft);
    this.write(from, NO_DRAFT);
  }

  write(sessionId: string, draft: Draft): void {
    const { storage, tabStorage } = this.env;
    const key = PREFIX + sessionId;
    for (const listener of this.writeListeners) listener(sessionId, draft);
    try {
      if (draft.text || draft.files.length) {
        const saved = JSON.stringify(draft);
        tabStorage?.setItem(key, saved);
        storage?.setItem(key, saved);
        return;
      }
      const mine = tabStorage?.getItem(key) ?? null;
      if (mine === null || mine === storage?.getItem(key)) storage?.removeItem(key); // not another tab's
      tabStorage?.removeItem(key);
      for (const each of [tabStorage, storage]) each?.removeItem(STORED_PREFIX + sessionId);
    } catch {
      // Storage is full or disabled: the text is still on the page.
    }
  }

  /** Adds to a draft, also to the one that is shown. */
  append(sessionId: string, text: string, files: readonly FilePart[] = []): void {
    const before = this.read(sessionId);
    const draft = {
      text: [before.text.trimEnd(), text].filter(Boolean).join("\n\n"),
      files: [...before.files, ...files],
    };
    this.write(sessionId, draft);
    for (const listener of this.listeners.get(sessionId) ?? []) listener(draft);
  }

  /** Calls `listener` with each change of a draft. */
  onWrite(listener: (sessionId: string, draft: Draft) => void): () => void {
    this.writeListeners.add(listener);
    return () => {
      this.writeListeners.delete(listener);
    };
  }

  /** Calls `listener` when text was added to the draft from elsewhere on the page. */
  onAppend(sessionId: string, listener: (draft: Draft) => void): () => void {
    const listeners = this.listeners.get(sessionId) ?? new Set();
    this.listeners.set(sessionId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (!listeners.size) this.listeners.delete(sessionId);
    };
  }
}

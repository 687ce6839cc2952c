// Unsent messages, one per session. They survive a reload (U5).

import type { Env } from "./env.ts";
import type { FilePart } from "./types.ts";

export interface Draft {
  readonly text: string;
  readonly files: readonly FilePart[];
}

const PREFIX = "holdfast.draft.";
/** The key of the draft of a chat that does not exist yet. */
export const NEW_CHAT = "new";
export const NO_DRAFT: Draft = { text: "", files: [] };

export class Drafts {
  constructor(private readonly env: Env) {}

  read(sessionId: string): Draft {
    try {
      const saved = JSON.parse(this.env.storage?.getItem(PREFIX + sessionId) ?? "null") as Draft | null;
      return saved ?? NO_DRAFT;
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
    try {
      if (draft.text || draft.files.length) this.env.storage?.setItem(PREFIX + sessionId, JSON.stringify(draft));
      else this.env.storage?.removeItem(PREFIX + sessionId);
    } catch {
      // Storage is full or disabled: the text is still on the page.
    }
  }
}

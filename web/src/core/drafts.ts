// Text that is typed and not sent, per session; it survives a refresh (U5).

import type { Env } from "./env.ts";
import type { FilePart } from "./wire.ts";

export interface Draft {
  readonly text: string;
  readonly files: readonly FilePart[];
}

const PREFIX = "holdfast.draft.";
export const NO_DRAFT: Draft = { text: "", files: [] };

export class Drafts {
  constructor(private readonly env: Env) {}

  read(of: string): Draft {
    try {
      const found = JSON.parse(this.env.storage?.getItem(PREFIX + of) ?? "null") as Draft | null;
      return found ?? NO_DRAFT;
    } catch {
      return NO_DRAFT;
    }
  }

  write(of: string, draft: Draft): void {
    try {
      if (draft.text || draft.files.length) this.env.storage?.setItem(PREFIX + of, JSON.stringify(draft));
      else this.env.storage?.removeItem(PREFIX + of);
    } catch {
      // Full or forbidden: the text is still on the page.
    }
  }
}

// The questions of a chat, or the messages in which a text was found, oldest first. Pages are loaded from the newest on,
// until all are there: the chat may have more messages than are loaded.

import type { Api } from "./api.ts";
import type { MessageExcerptListResponse, MessageExcerptResponse } from "./api-types.ts";
import { Store } from "./store.ts";

export type MessageExcerpt = MessageExcerptResponse;

export interface OutlineState {
  readonly query: string;
  readonly items: readonly MessageExcerpt[];
  readonly loading: boolean;
  readonly failed: boolean;
}

/** More are not listed. */
const MAX_ITEMS = 5000;

export class ChatOutline {
  readonly state = new Store<OutlineState>({ query: "", items: [], loading: false, failed: false });
  private latest = 0;

  constructor(
    private readonly api: Api,
    private readonly sid: string,
  ) {}

  /** Lists what a query finds, or without one the questions. A later call replaces an earlier one. */
  async load(query: string): Promise<void> {
    const turn = ++this.latest;
    this.state.set({ query, items: [], loading: true, failed: false });
    let cursor: string | null = null;
    do {
      const page: MessageExcerptListResponse | null = await this.api.outline(this.sid, query, cursor).catch(() => null);
      if (turn !== this.latest) return;
      if (!page) return this.state.patch({ loading: false, failed: true });
      this.state.patch({ items: [...page.items, ...this.state.get().items] });
      cursor = page.next;
    } while (cursor !== null && this.state.get().items.length < MAX_ITEMS);
    this.state.patch({ loading: false });
  }

  /** Ends loading. */
  close(): void {
    this.latest++;
  }
}

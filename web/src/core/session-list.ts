// The list of sessions, kept current by the change feed, and the search results. Which matches are found, and their
// order, is decided by the server.

import { type Api, ApiError, errorMessage } from "./api.ts";
import type { UpdateSessionRequest } from "./api-types.ts";
import type { Env } from "./env.ts";
import { CoalescedTask, Store } from "./store.ts";
import type { Session } from "./types.ts";

export interface SessionListState {
  readonly items: readonly Session[];
  readonly next: string | null;
  readonly loaded: boolean;
  readonly archived: boolean;
  /** Whether there are archived chats, as far as it matters: known while the list is empty. */
  readonly hasArchived: boolean;
  readonly query: string;
  /** null unless a search is active. */
  readonly results: readonly Session[] | null;
  readonly nextResults: string | null;
}

const MAX_TITLE = 60;

/** The first words of a message, as the title of a chat that has none yet. */
export function firstWords(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= MAX_TITLE) return line;
  const cut = line.slice(0, MAX_TITLE);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), MAX_TITLE / 2)).trimEnd()}…`;
}

/** With more changed sessions than this, the list is reloaded instead of each session. */
const MAX_SINGLE_RELOADS = 12;
const RELOAD_DELAY_MS = 60;
const LISTED = { archived_projects: "false" };

export class SessionList {
  readonly state = new Store<SessionListState>({
    items: [],
    next: null,
    loaded: false,
    archived: false,
    hasArchived: false,
    query: "",
    results: null,
    nextResults: null,
  });
  private readonly reload = new CoalescedTask(() => this.load());
  private readonly dirty = new Set<string>();
  /** Chats that are about to be deleted. */
  private readonly hidden = new Set<string>();
  /** Titles of chats that the server has not named yet. */
  private readonly provisionalTitles = new Map<string, string>();
  private cancelReload: (() => void) | null = null;
  private loadingMore = false;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly onError: (problem: string) => void,
  ) {}

  refresh = () => this.reload.run();

  hide(sid: string): void {
    this.hidden.add(sid);
    this.remove(sid);
  }

  /** Lists a chat again that is no longer about to be deleted, if it is still there. */
  show(sid: string): void {
    if (this.hidden.delete(sid)) this.markChanged(sid);
  }

  private isShown = ({ id }: Session): boolean => !this.hidden.has(id);

  private async load(): Promise<void> {
    const { archived } = this.state.get();
    try {
      const page = await this.api.sessions({ archived, ...LISTED });
      const empty = !archived && !page.items.length;
      const hasArchived = empty && (await this.api.sessions({ archived: true, limit: 1 })).items.length > 0;
      if (this.state.get().archived !== archived) return;
      this.state.patch({
        items: sorted(page.items.filter(this.isShown).map(this.named)),
        next: page.next,
        loaded: true,
        hasArchived,
      });
    } catch {
      // The banner shows the lost connection; the feed refreshes the list on reconnect.
    }
  }

  /** Loads the next page of the search results, or of the list. */
  loadMore = async (): Promise<void> => {
    if (this.loadingMore) return;
    this.loadingMore = true;
    await (this.state.get().results ? this.loadMoreResults() : this.loadMoreItems());
    this.loadingMore = false;
  };

  private async loadMoreResults(): Promise<void> {
    const { query, nextResults: cursor } = this.state.get();
    if (cursor === null) return;
    try {
      const page = await this.api.sessions({ query, cursor });
      const { results, nextResults } = this.state.get();
      if (nextResults !== cursor) return; // another search meanwhile
      const known = new Set(results?.map((item) => item.id));
      const fresh = page.items.filter((item) => !known.has(item.id) && this.isShown(item));
      this.state.patch({ results: [...(results ?? []), ...fresh], nextResults: page.next });
    } catch {
      // Scrolling to the end again retries.
    }
  }

  private async loadMoreItems(): Promise<void> {
    const { next, archived } = this.state.get();
    if (next === null) return;
    try {
      const page = await this.api.sessions({ archived, ...LISTED, cursor: next });
      const fresh = new Set(page.items.map((item) => item.id));
      const { items, next: current } = this.state.get();
      if (current !== next) return; // another list is shown meanwhile
      this.state.patch({
        items: sorted([
          ...items.filter((item) => !fresh.has(item.id)),
          ...page.items.filter(this.isShown).map(this.named),
        ]),
        next: page.next,
      });
    } catch {
      // Scrolling to the end again retries.
    }
  }

  showArchived(archived: boolean): void {
    this.state.patch({ archived, items: [], next: null, loaded: false });
    void this.refresh();
  }

  markChanged(sid: string): void {
    this.dirty.add(sid);
    this.cancelReload ??= this.env.setTimer(RELOAD_DELAY_MS, () => {
      this.cancelReload = null;
      void this.reloadDirty();
    });
  }

  forget(sid: string): void {
    this.dirty.delete(sid);
    this.provisionalTitles.delete(sid);
    this.hidden.delete(sid);
    this.remove(sid);
  }

  private remove(sid: string): void {
    const { items, results } = this.state.get();
    this.state.patch({
      items: items.filter((item) => item.id !== sid),
      results: results?.filter((item) => item.id !== sid) ?? null,
    });
  }

  /** Titles a chat by its first message until the server names it. */
  nameByMessage(sid: string, text: string): void {
    const title = firstWords(text);
    if (!title || this.provisionalTitles.get(sid) === title) return;
    this.provisionalTitles.set(sid, title);
    this.state.patch({ items: this.state.get().items.map(this.named) });
  }

  /** The session with a title, if there is one. */
  readonly named = (session: Session): Session => {
    if (session.title) this.provisionalTitles.delete(session.id);
    const title = this.provisionalTitles.get(session.id);
    return title ? { ...session, title } : session;
  };

  put(unnamed: Session): void {
    if (!this.isShown(unnamed)) return;
    const session = this.named(unnamed);
    const { items, archived } = this.state.get();
    const others = items.filter((item) => item.id !== session.id);
    const listed = session.archived === archived && session.settings?.source !== "compare";
    const hasArchived = this.state.get().hasArchived || session.archived;
    this.state.patch({ items: listed ? sorted([session, ...others]) : others, hasArchived });
  }

  private async reloadDirty(): Promise<void> {
    const ids = [...this.dirty];
    this.dirty.clear();
    if (ids.length > MAX_SINGLE_RELOADS) return this.refresh();
    for (const sid of ids) {
      try {
        this.put(await this.api.session(sid));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.forget(sid);
      }
    }
  }

  async search(query: string): Promise<void> {
    this.state.patch({ query });
    if (!query.trim()) return this.state.patch({ results: null, nextResults: null });
    try {
      const page = await this.api.sessions({ query });
      if (this.state.get().query === query) {
        this.state.patch({ results: page.items.filter(this.isShown), nextResults: page.next });
      }
    } catch {
      if (this.state.get().query === query) this.state.patch({ results: [], nextResults: null });
    }
  }

  patch = (sid: string, fields: UpdateSessionRequest): Promise<boolean> =>
    this.attempt(async () => this.put(await this.api.patchSession(sid, fields)));

  /** Changes several chats, also if some cannot be changed. Returns those that were. */
  patchAll = async (
    chats: readonly Session[],
    fieldsOf: (chat: Session) => UpdateSessionRequest,
  ): Promise<readonly Session[]> => {
    const changed: Session[] = [];
    let problem: string | null = null;
    for (const chat of chats) {
      try {
        this.put(await this.api.patchSession(chat.id, fieldsOf(chat)));
        changed.push(chat);
      } catch (error) {
        problem = errorMessage(error);
        if (error instanceof ApiError && error.isTransient) break; // the others would fail alike
      }
    }
    const failed = chats.filter((chat) => !changed.includes(chat));
    const names = failed.length === 1 ? `“${failed[0]?.title || "Untitled chat"}” was` : `${failed.length} chats were`;
    if (problem !== null) this.onError(`${names} not changed. ${problem}`);
    return changed;
  };

  /** Returns the new title, or null if there is none. */
  generateTitle = async (sid: string): Promise<string | null> => {
    let title: string | null = null;
    await this.attempt(async () => {
      const session = await this.api.generateTitle(sid);
      title = session.title;
      this.put(session);
    });
    return title;
  };

  private async attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.onError(errorMessage(error));
      return false;
    }
  }
}

function sorted(items: readonly Session[]): Session[] {
  return [...items].sort((a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at.localeCompare(a.updated_at));
}

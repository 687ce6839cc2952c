// The list of sessions, kept fresh by the change feed; and the search over them.

import type { Api } from "./api.ts";
import type { Env } from "./env.ts";
import { Latest, Store } from "./store.ts";
import type { Json, Session } from "./wire.ts";

export interface SessionsState {
  readonly items: readonly Session[];
  readonly next: string | null;
  readonly loaded: boolean;
  readonly archived: boolean;
  readonly query: string;
  /** null: no search is on. */
  readonly found: readonly Session[] | null;
}

const MANY = 12;

export class Sessions {
  readonly state = new Store<SessionsState>({
    items: [],
    next: null,
    loaded: false,
    archived: false,
    query: "",
    found: null,
  });
  private readonly latest = new Latest(() => this.load());
  private readonly dirty = new Set<string>();
  private takeBack: (() => void) | null = null;
  private loadingMore = false;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly failed: (problem: string) => void,
  ) {}

  refresh = () => this.latest.run();

  private async load(): Promise<void> {
    const { archived } = this.state.get();
    try {
      const page = await this.api.sessions({ archived });
      if (this.state.get().archived !== archived) return;
      this.state.patch({ items: sorted(page.items), next: page.next, loaded: true });
    } catch {
      // The banner says so; the feed refreshes us when the line is back.
    }
  }

  more = async (): Promise<void> => {
    const { next, archived } = this.state.get();
    if (next === null || this.loadingMore) return;
    this.loadingMore = true;
    try {
      const page = await this.api.sessions({ archived, cursor: next });
      const fresh = new Set(page.items.map((item) => item.id));
      const { items } = this.state.get();
      this.state.patch({
        items: sorted([...items.filter((item) => !fresh.has(item.id)), ...page.items]),
        next: page.next,
      });
    } catch {
      // Scrolling there again tries again.
    } finally {
      this.loadingMore = false;
    }
  };

  showArchived(archived: boolean): void {
    this.state.patch({ archived, items: [], next: null, loaded: false });
    void this.refresh();
  }

  changed(sid: string): void {
    this.dirty.add(sid);
    this.takeBack ??= this.env.after(60, () => {
      this.takeBack = null;
      void this.readDirty();
    });
  }

  removed(sid: string): void {
    this.dirty.delete(sid);
    const { items, found } = this.state.get();
    this.state.patch({
      items: items.filter((item) => item.id !== sid),
      found: found?.filter((item) => item.id !== sid) ?? null,
    });
  }

  put(session: Session): void {
    const { items, archived } = this.state.get();
    const others = items.filter((item) => item.id !== session.id);
    this.state.patch({ items: session.archived === archived ? sorted([session, ...others]) : others });
  }

  private async readDirty(): Promise<void> {
    const ids = [...this.dirty];
    this.dirty.clear();
    if (ids.length > MANY) return this.refresh();
    for (const sid of ids) {
      try {
        this.put(await this.api.session(sid));
      } catch (error) {
        if ((error as { status?: number }).status === 404) this.removed(sid);
      }
    }
  }

  async search(query: string): Promise<void> {
    this.state.patch({ query });
    if (!query.trim()) return this.state.patch({ found: null });
    try {
      const page = await this.api.sessions({ query, limit: 50 });
      if (this.state.get().query === query) this.state.patch({ found: page.items });
    } catch {
      if (this.state.get().query === query) this.state.patch({ found: [] });
    }
  }

  patch = (sid: string, fields: { [name: string]: Json }): Promise<boolean> =>
    this.attempt(async () => this.put(await this.api.patchSession(sid, fields)));
  remove = (sid: string, forget = false): Promise<boolean> =>
    this.attempt(async () => {
      await this.api.deleteSession(sid, forget);
      this.removed(sid);
    });

  private async attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.failed((error as Error).message);
      return false;
    }
  }
}

function sorted(items: readonly Session[]): Session[] {
  return [...items].sort((a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at.localeCompare(a.updated_at));
}

// The whole client without a page: stores, the change feed, and what happens between them.

import { Api } from "./api.ts";
import { Drafts } from "./drafts.ts";
import type { Env } from "./env.ts";
import { Feed } from "./feed.ts";
import { Outbox } from "./outbox.ts";
import { Sessions } from "./sessions.ts";
import type { Frame } from "./sse.ts";
import { Store } from "./store.ts";
import { Thread } from "./thread.ts";
import { Watch } from "./watch.ts";
import type { Agent, FilePart, JsonObject, Model } from "./wire.ts";

export type Connection = "connecting" | "online" | "lost";

export interface Catalogue {
  readonly models: readonly Model[];
  readonly defaultModel: string | null;
  readonly agents: readonly Agent[];
  readonly loaded: boolean;
}

export interface Change {
  readonly kind: string;
  readonly session_id?: string;
  readonly run_id?: string;
  readonly status?: string;
}

export class App {
  readonly api: Api;
  readonly sessions: Sessions;
  readonly outbox: Outbox;
  readonly drafts: Drafts;
  readonly watch: Watch;
  readonly connection = new Store<Connection>("connecting");
  readonly catalogue = new Store<Catalogue>({ models: [], defaultModel: null, agents: [], loaded: false });
  /** What was asked of the list and could not be done. */
  readonly problem = new Store<string | null>(null);
  readonly thread = new Store<Thread | null>(null);
  private feed: Feed | null = null;
  private readonly listeners = new Set<(change: Change) => void>();

  constructor(readonly env: Env) {
    this.api = new Api(env);
    this.sessions = new Sessions(env, this.api, (problem) => this.problem.set(problem));
    this.outbox = new Outbox(env, this.api, (sid) => {
      this.sessions.changed(sid);
      if (this.thread.get()?.sid === sid) void this.thread.get()?.refresh();
    });
    this.drafts = new Drafts(env);
    this.watch = new Watch(env, this.api);
  }

  start(): void {
    this.follow();
    void this.sessions.refresh();
    void this.readCatalogue();
    this.outbox.resume();
  }

  // ---- the change feed ----

  follow(): void {
    this.feed ??= new Feed(this.env, {
      frame: (frame) => this.take(frame),
      line: (state) => this.connection.set(state === "open" ? "online" : "lost"),
      opened: () => this.readAgain(),
      over: (outcome) => {
        if (outcome === "login") location.assign("/login");
        else this.env.after(1000, () => this.followAgain());
      },
    });
  }

  private followAgain(): void {
    this.feed?.close();
    this.feed = null;
    this.follow();
  }

  private take(frame: Frame): void {
    if (frame.event === "reset") return this.readAgain();
    const change: Change = { kind: frame.event, ...(JSON.parse(frame.data) as object) };
    const sid = change.session_id;
    if (!sid) return;
    const open = this.thread.get()?.sid === sid ? this.thread.get() : null;
    if (frame.event === "session.deleted") {
      this.sessions.removed(sid);
      open?.gone();
    } else {
      this.sessions.changed(sid);
      void open?.refresh();
    }
    for (const listener of this.listeners) listener(change);
  }

  onChange(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  private readAgain(): void {
    void this.sessions.refresh();
    void this.thread.get()?.refresh();
    if (!this.catalogue.get().loaded) void this.readCatalogue();
    for (const listener of this.listeners) listener({ kind: "reset" });
  }

  async readCatalogue(): Promise<void> {
    try {
      const [models, agents] = await Promise.all([this.api.models(), this.api.agents()]);
      this.catalogue.set({
        models: models.items,
        defaultModel: models.default,
        agents: agents.items,
        loaded: true,
      });
    } catch {
      // Read again when the line is back.
    }
  }

  // ---- sessions ----

  open(sid: string | null): Thread | null {
    const now = this.thread.get();
    if ((now?.sid ?? null) === sid) return now;
    now?.close();
    const next = sid === null ? null : new Thread(this.env, this.api, this.outbox, sid);
    this.thread.set(next);
    void next?.refresh();
    return next;
  }

  /** U4: a new conversation says which one it follows. */
  async begin(text: string, files: readonly FilePart[], fields: JsonObject, previous: string | null): Promise<string> {
    const session = await this.api.createSession({ ...fields, ...(previous ? { previous_session_id: previous } : {}) });
    this.sessions.put(session);
    this.outbox.add(session.id, text, files);
    return session.id;
  }
}

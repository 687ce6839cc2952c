// The client without its user interface: the stores, the change feed, and how one updates the other. While event streams
// do not arrive, what is shown is read again at intervals (polling).

import { Api, isMissing, UNREACHABLE } from "./api.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { ChatDefaults } from "./chat-settings.ts";
import { Drafts, NEW_CHAT, NO_DRAFT } from "./drafts.ts";
import type { Env } from "./env.ts";
import { HiddenTabMonitor } from "./hidden-tab-monitor.ts";
import { NewChat } from "./new-chat-choices.ts";
import { Outbox, type Outgoing } from "./outbox.ts";
import { PendingDeletions } from "./pending-deletions.ts";
import { ProjectList } from "./projects.ts";
import { SessionList } from "./session-list.ts";
import type { Frame } from "./sse-parser.ts";
import { Store } from "./store.ts";
import { Thread } from "./thread.ts";
import { Toasts } from "./toasts.ts";
import type { Agent, Message, Model, Session } from "./types.ts";
import { showBudgetWarnings } from "./usage.ts";

/** `polling`: the server answers, but its event streams do not arrive, so what is shown is read again and again. */
export type Connection = "connecting" | "online" | "polling" | "lost";

export interface Catalog {
  readonly models: readonly Model[];
  readonly defaultModel: string | null;
  readonly agents: readonly Agent[];
  readonly chatDefaults: ChatDefaults | null;
  readonly loaded: boolean;
}

export interface Change {
  readonly kind: string;
  readonly session_id?: string;
  readonly run_id?: string;
}

const POLL_INTERVAL_MS = 4000;
/** How often the providers are asked for their models at most, when somebody looks at them. */
const CATALOG_INTERVAL_MS = 10_000;
const FEED_RESTART_MS = 1000;
const MAX_CHECKED_DRAFTS = 20;

export class App {
  readonly api: Api;
  readonly sessions: SessionList;
  readonly projects: ProjectList;
  readonly outbox: Outbox;
  readonly drafts: Drafts;
  readonly newChat: NewChat;
  readonly hiddenTab: HiddenTabMonitor;
  readonly toasts: Toasts;
  readonly deletions: PendingDeletions;
  readonly connection = new Store<Connection>("connecting");
  readonly catalog = new Store<Catalog>({
    models: [],
    defaultModel: null,
    agents: [],
    chatDefaults: null,
    loaded: false,
  });
  /** Why the last action on the session list failed. */
  readonly problem = new Store<string | null>(null);
  readonly thread = new Store<Thread | null>(null);
  /** Sessions that were deleted elsewhere and have a draft here. */
  readonly lostDrafts = new Store<readonly string[]>([]);
  private feed: ChangeFeed | null = null;
  private catalogCheckedAt = Number.NEGATIVE_INFINITY;
  /** The last answer that was compared with the catalog. */
  private comparedAnswer: string | null = null;
  private cancelPoll: (() => void) | null = null;
  private readonly listeners = new Set<(change: Change) => void>();

  constructor(readonly env: Env) {
    this.api = new Api(env);
    this.sessions = new SessionList(env, this.api, (problem) => this.problem.set(problem));
    this.projects = new ProjectList(this.api);
    this.drafts = new Drafts(env);
    const listener = {
      onSessionCreated: (session: Session, firstMessage: string) => {
        if (this.sessions.state.get().archived) this.sessions.showArchived(false); // the list that it is in
        this.sessions.nameByMessage(session.id, firstMessage);
        this.sessions.put(session);
      },
      onStored: (sid: string) => {
        this.sessions.markChanged(sid);
        void this.openThreadOf(sid)?.refresh();
      },
    };
    this.outbox = new Outbox(env, this.api, listener, this.drafts.saved);
    this.newChat = new NewChat(env);
    this.deletions = new PendingDeletions(env, this.api, {
      onHidden: (sid) => this.sessions.hide(sid),
      onShown: (sid) => this.sessions.show(sid),
      onDeleted: (sid) => {
        this.sessions.forget(sid);
        this.discardUnsent(sid);
      },
      onFailed: (problem) => this.problem.set(problem),
    });
    this.toasts = new Toasts(env);
    this.api.onWrite((path) => this.toasts.onWrite(path));
    this.api.showWarnings = (warnings) => showBudgetWarnings(env, this.toasts, warnings);
    this.hiddenTab = new HiddenTabMonitor(env, this.api);
    env.onVisibilityChange(() => env.isHidden() || this.checkCatalog());
  }

  start(): void {
    this.startFeed();
    this.deletions.resume();
    void this.sessions.refresh();
    void this.projects.refresh();
    void this.loadCatalog();
    void this.findLostDrafts();
    this.outbox.resume();
  }

  private startFeed(): void {
    this.feed?.close();
    this.feed = new ChangeFeed(this.env, {
      onFrame: (frame) => this.applyChange(frame),
      onStateChange: (state) => this.setConnection(state === "open"),
      onConnected: () => {
        this.dismissUnreachable();
        this.refreshAll();
      },
      onEnd: (outcome) => {
        if (outcome === "unauthorized") this.env.openLogin();
        else this.env.setTimer(FEED_RESTART_MS, () => this.startFeed());
      },
    });
  }

  /** What failed because the server was unreachable can be tried again now. */
  private dismissUnreachable(): void {
    if (this.problem.get() === UNREACHABLE) this.problem.set(null);
    const thread = this.thread.get();
    if (thread?.state.get().problem === UNREACHABLE) thread.dismissProblem();
  }

  private setConnection(open: boolean): void {
    if (open) {
      this.cancelPoll?.();
      this.cancelPoll = null;
      this.connection.set("online");
    } else {
      if (this.connection.get() !== "polling") this.connection.set("lost");
      this.cancelPoll ??= this.env.setTimer(POLL_INTERVAL_MS, () => void this.poll());
    }
  }

  /** Reads what is shown while no events arrive: a proxy may block event streams, and nothing else. */
  private async poll(): Promise<void> {
    try {
      if (!this.env.isHidden()) {
        await this.api.sessions({ limit: 1 });
        if (this.cancelPoll === null) return; // events arrive again
        this.connection.set("polling");
        this.refreshAll();
        this.thread.get()?.pollLive();
      }
    } catch {
      if (this.cancelPoll !== null) this.connection.set("lost");
    }
    if (this.cancelPoll !== null) this.cancelPoll = this.env.setTimer(POLL_INTERVAL_MS, () => void this.poll());
  }

  private async findLostDrafts(): Promise<void> {
    const lost: string[] = [];
    for (const sid of this.drafts.sessionIds(MAX_CHECKED_DRAFTS)) {
      try {
        await this.api.session(sid);
      } catch (error) {
        if (isMissing(error)) lost.push(sid);
      }
    }
    this.lostDrafts.set(lost);
  }

  private applyChange(frame: Frame): void {
    if (frame.event === "reset") return this.refreshAll();
    const change: Change = { kind: frame.event, ...(JSON.parse(frame.data) as object) };
    const sid = change.session_id;
    if (frame.event === "project.changed") {
      void this.projects.refresh();
    } else if (!sid) {
      return;
    } else if (frame.event === "session.deleted") {
      this.sessions.forget(sid);
      this.openThreadOf(sid)?.markDeleted();
      const draft = this.drafts.read(sid);
      const lost = this.lostDrafts.get();
      if (draft !== NO_DRAFT && !lost.includes(sid)) this.lostDrafts.set([...lost, sid]);
    } else {
      this.sessions.markChanged(sid);
      void this.openThreadOf(sid)?.refresh();
    }
    for (const listener of this.listeners) listener(change);
  }

  private openThreadOf(sid: string): Thread | null {
    const thread = this.thread.get();
    return thread?.sid === sid ? thread : null;
  }

  onChange(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  private refreshAll(): void {
    void this.sessions.refresh();
    void this.projects.refresh();
    void this.thread.get()?.refresh();
    void this.loadCatalog(); // the default model may have changed
    for (const listener of this.listeners) listener({ kind: "reset" });
  }

  /** With `refresh`, the server asks every provider again. Returns false if it could not be reached. */
  async loadCatalog(refresh = false): Promise<boolean> {
    try {
      const [models, agents, chatDefaults] = await Promise.all([
        this.api.models(refresh),
        this.api.agents(),
        this.api.chatDefaults(),
      ]);
      this.catalog.set({
        models: models.items,
        defaultModel: models.default,
        agents: agents.items,
        chatDefaults,
        loaded: true,
      });
      return true;
    } catch {
      return false; // loaded again on reconnect
    }
  }

  /** Asks the providers again, because somebody is about to choose a model, unless they were asked just now. */
  checkCatalog(): void {
    if (this.env.now() - this.catalogCheckedAt < CATALOG_INTERVAL_MS) return;
    this.catalogCheckedAt = this.env.now();
    void this.loadCatalog(true);
  }

  /** Asks the providers again if an answer shows that the catalog is wrong about its model. */
  private compareWithCatalog({ id, role, status, error, model }: Message): void {
    if (role !== "assistant" || status === "streaming" || id === this.comparedAnswer) return;
    this.comparedAnswer = id;
    const listed = this.catalog.get().models.find((item) => item.id === model);
    const failed = status === "failed" && ["unavailable", "timeout"].includes(error?.code ?? "");
    if (listed && (listed.available ? failed : status === "complete")) void this.loadCatalog(true);
  }

  readonly isProgram = (agent: string): boolean =>
    this.catalog.get().agents.some((item) => item.name === agent && item.is_program);

  /** The model of chats that have none of their own. */
  readonly defaultModel = (project: string | null | undefined): string | null =>
    this.projects.named(project)?.model ?? this.catalog.get().defaultModel;

  openThread(sid: string | null): void {
    const current = this.thread.get();
    if ((current?.sid ?? null) === sid) return;
    current?.close();
    const next =
      sid === null ? null : new Thread(this.env, this.api, this.outbox, sid, this.defaultModel, this.isProgram);
    next?.state.subscribe(() => {
      this.nameUntitled(next);
      const last = next.state.get().messages.at(-1);
      if (last) this.compareWithCatalog(last);
    });
    this.thread.set(next);
    void next?.refresh();
  }

  private nameUntitled(thread: Thread): void {
    const { session, messages, older } = thread.state.get();
    const first = messages[0];
    if (!session || session.title || older !== null || first?.role !== "user") return;
    const text = first.parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
    this.sessions.nameByMessage(session.id, text);
  }

  /** Moves what was typed and sent in a chat that was deleted to the draft of a new chat. */
  moveToNewChat(sid: string): void {
    const sent = this.outbox.state.get().filter((item) => item.sid === sid);
    const pieces = [this.drafts.read(NEW_CHAT), ...sent, this.drafts.read(sid)];
    const text = pieces.map((piece) => piece.text.trim()).filter(Boolean);
    this.drafts.write(NEW_CHAT, { text: text.join("\n\n"), files: pieces.flatMap((piece) => piece.files) });
    this.discardUnsent(sid);
  }

  /**
   * Moves a message that was not sent back to the message box. A chat that was created for it, and has nothing else, is
   * deleted; returns whether the message is now in the box of a new chat.
   */
  async takeBack(item: Outgoing): Promise<boolean> {
    const { key, sid, chat, text, files } = item;
    const mayBeNew = chat !== undefined && (sid === null || item.state === "refused");
    const isNew = mayBeNew && (sid === null || (await this.isEmpty(sid, key)));
    if (!this.outbox.find(key)) return false; // a second click
    if (isNew) {
      const { previous_session_id: _, ...choices } = chat;
      this.newChat.choose(choices);
      const typed = this.drafts.read(sid ?? key);
      this.drafts.append(NEW_CHAT, text, files);
      this.drafts.append(NEW_CHAT, typed.text, typed.files);
      this.drafts.write(sid ?? key, NO_DRAFT);
    } else this.drafts.append(sid ?? key, text, files);
    this.outbox.discard(key);
    if (isNew && sid !== null) {
      this.sessions.forget(sid);
      this.api.deleteSession(sid, false).catch(() => undefined); // an empty chat stays in the list
    }
    return isNew;
  }

  /** Whether the chat has nothing but this message, which was not sent. */
  private async isEmpty(sid: string, key: string): Promise<boolean> {
    const session = await this.api.session(sid).catch(() => null);
    const others = this.outbox.state.get().some((item) => item.sid === sid && item.key !== key);
    return session?.head === null && !session.can_redo && !session.queued_runs.length && !others;
  }

  /** Discards what was typed and sent in a chat that was deleted. */
  discardUnsent(sid: string): void {
    this.drafts.write(sid, NO_DRAFT);
    for (const item of this.outbox.state.get()) if (item.sid === sid) this.outbox.discard(item.key);
    this.lostDrafts.set(this.lostDrafts.get().filter((lost) => lost !== sid));
  }
}

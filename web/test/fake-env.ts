// A fake environment: tests advance its clock and script its server.

import type { Env } from "../src/core/env.ts";

export interface Call {
  readonly path: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  readonly signal: AbortSignal | null;
}
type Answer = Response | Error | ((call: Call) => Response | Promise<Response>);

/** What the tabs of a browser share: the storage, and who leads. */
export class FakeBrowser {
  readonly kept = new Map<string, string>();
  readonly tabs = new Set<FakeEnv>();
  private candidates: { tab: FakeEnv; name: string; begin: () => () => void; stop: (() => void) | null }[] = [];

  elect(tab: FakeEnv, name: string, begin: () => () => void): () => void {
    const candidate = { tab, name, begin, stop: null };
    this.candidates.push(candidate);
    this.lead(name);
    return () => this.release((_, other) => other === candidate);
  }

  release(leaves: (tab: FakeEnv, candidate: object) => boolean): void {
    const gone = this.candidates.filter((each) => leaves(each.tab, each));
    this.candidates = this.candidates.filter((each) => !gone.includes(each));
    for (const each of gone) {
      if (this.tabs.has(each.tab)) each.stop?.();
      this.lead(each.name);
    }
  }

  private lead(name: string): void {
    const first = this.candidates.find((each) => each.name === name);
    if (first && !first.stop) first.stop = first.begin();
  }
}

export class FakeEnv implements Env {
  readonly calls: Call[] = [];
  private timers = new Set<{ at: number; then: () => void }>();
  private time = 0;
  private hidden = false;
  private watchers = new Set<() => void>();
  private script: Answer[] = [];
  private ids = 0;
  private storageListeners = new Set<(key: string, value: string | null) => void>();
  readonly storage: NonNullable<Env["storage"]>;
  readonly tabStorage: NonNullable<Env["tabStorage"]>;

  constructor(
    private readonly browser = new FakeBrowser(),
    tab = new Map<string, string>(),
  ) {
    this.tabStorage = {
      getItem: (key) => tab.get(key) ?? null,
      setItem: (key, value) => void tab.set(key, value),
      removeItem: (key) => void tab.delete(key),
    };
    browser.tabs.add(this);
    const { kept } = browser;
    const change = (key: string, value: string | null) => {
      if (value === null) kept.delete(key);
      else kept.set(key, value);
      for (const tab of browser.tabs) if (tab !== this) tab.hearStorage(key, value);
    };
    this.storage = {
      getItem: (key) => kept.get(key) ?? null,
      setItem: change,
      removeItem: (key) => change(key, null),
      key: (n) => [...kept.keys()][n] ?? null,
      get length() {
        return kept.size;
      },
    };
  }

  /** Closes the tab: its timers never run, and another tab may lead. */
  close(): void {
    this.browser.tabs.delete(this);
    this.timers.clear();
    this.browser.release((tab) => tab === this);
  }

  private hearStorage(key: string, value: string | null): void {
    for (const listener of this.storageListeners) listener(key, value);
  }

  onStorageChange(listener: (key: string, value: string | null) => void) {
    this.storageListeners.add(listener);
    return () => {
      this.storageListeners.delete(listener);
    };
  }

  /** Queues the answers to the next calls; a call without an answer never returns. */
  answer(...answers: Answer[]): void {
    this.script.push(...answers);
  }

  fetch = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const call: Call = {
      path,
      method: init.method ?? "GET",
      headers: (init.headers ?? {}) as Record<string, string>,
      body: typeof init.body === "string" ? init.body : null,
      signal: init.signal ?? null,
    };
    this.calls.push(call);
    const next = this.script.shift();
    if (next === undefined)
      return new Promise((_, fail) => call.signal?.addEventListener("abort", () => fail(new Error("aborted"))));
    if (next instanceof Error) throw next;
    return typeof next === "function" ? next(call) : next;
  };

  setTimer(ms: number, then: () => void): () => void {
    const timer = { at: this.time + ms, then };
    this.timers.add(timer);
    return () => {
      this.timers.delete(timer);
    };
  }

  /** Advances the clock and runs the timers that become due. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    while (true) {
      const due = [...this.timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.time = due.at;
      this.timers.delete(due);
      due.then();
      await settle();
    }
    this.time = end;
  }

  hide(hidden: boolean): void {
    this.hidden = hidden;
    for (const watcher of [...this.watchers]) watcher();
  }

  random = () => 1;
  now = () => 1_700_000_000_000 + this.time;
  newId = () => `key-${++this.ids}`;
  logins = 0;
  openLogin = () => {
    this.logins++;
  };
  isHidden = () => this.hidden;
  onVisibilityChange(changed: () => void) {
    this.watchers.add(changed);
    return () => {
      this.watchers.delete(changed);
    };
  }
  electLeader(name: string, begin: () => () => void) {
    return this.browser.elect(this, name, begin);
  }
  openChannel() {
    return { send: () => undefined, close: () => undefined };
  }
  private leaveListeners = new Set<() => void>();
  onPageHide(listener: () => void) {
    this.leaveListeners.add(listener);
    return () => {
      this.leaveListeners.delete(listener);
    };
  }
  leavePage(): void {
    for (const listener of this.leaveListeners) listener();
  }
  onOnline = () => () => undefined;
  onNextFrame(then: () => void) {
    return this.setTimer(16, then);
  }
}

/** Waits until all pending promises have settled. */
export async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((next) => setImmediate(next));
}

export interface Line {
  readonly response: Response;
  say(...frames: string[]): void;
  end(): void;
  lose(): void;
}

/** A response stream that the test writes to. */
export function line(): Line {
  let out: ReadableStreamDefaultController<Uint8Array>;
  const bytes = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      out = controller;
    },
  });
  return {
    response: new Response(body, { status: 200 }),
    say: (...frames) => {
      for (const frame of frames) out.enqueue(bytes.encode(frame));
    },
    end: () => out.close(),
    lose: () => out.error(new Error("the line is lost")),
  };
}

export const frame = (seq: number, type: string, data: unknown): string =>
  `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
export const text = (seq: number, said: string): string => frame(seq, "text.delta", { text: said });
export const json = (value: unknown, status = 200): Response => new Response(JSON.stringify(value), { status });

// The environment that the core runs in: network, time, storage and tabs. Tests pass a fake one.

export interface Env {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Calls `callback` after `ms`; the returned function cancels it. */
  setTimer(ms: number, callback: () => void): () => void;
  random(): number;
  now(): number;
  newId(): string;
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length"> | null;
  /** Storage of this tab alone. It is kept when the page is reloaded. */
  tabStorage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | null;
  /** Calls `listener` when another tab has changed the storage; null: the entry was removed. */
  onStorageChange(listener: (key: string, value: string | null) => void): () => void;
  /** Goes to the login page, which comes back to this page after the login. */
  openLogin(): void;
  isHidden(): boolean;
  onVisibilityChange(listener: () => void): () => void;
  /** Calls `listener` when the page is closed, reloaded or left. */
  onPageHide(listener: () => void): () => void;
  onOnline(listener: () => void): () => void;
  /** Calls `start` once this tab is the only leader under `name`; the returned function resigns. */
  electLeader(name: string, start: () => () => void): () => void;
  /** Connects to the other tabs of this browser. */
  openChannel(name: string, onMessage: (message: unknown) => void): Channel;
  /** Calls `callback` before the next repaint; the returned function cancels it. */
  onNextFrame(callback: () => void): () => void;
}

export interface Channel {
  send(message: unknown): void;
  close(): void;
}

export function sleep(env: Env, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const finish = () => {
      cancel();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = env.setTimer(ms, finish);
    signal.addEventListener("abort", finish);
  });
}

/** Exponential backoff from 0.3 s to 8 s, with jitter in the upper half. */
export function backoff(attempt: number, random: () => number): number {
  const full = Math.min(8000, 300 * 2 ** Math.min(attempt, 10));
  return full / 2 + (full / 2) * random();
}

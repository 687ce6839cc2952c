// What the core needs from its surroundings, as arguments: tests give their own.

export interface Env {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Calls `then` after `ms`; the answer takes it back. */
  after(ms: number, then: () => void): () => void;
  random(): number;
  now(): number;
  newId(): string;
  storage: Storage | null;
  isHidden(): boolean;
  onVisibility(changed: () => void): () => void;
  onOnline(changed: () => void): () => void;
  /** Lead among the tabs under this name, as soon as no other does; the answer resigns. */
  lead(name: string, begin: () => () => void): () => void;
  /** A word to all other tabs. */
  channel(name: string, hear: (word: unknown) => void): Channel;
  /** The next moment at which something new can be painted. */
  frame(then: () => void): () => void;
}

export interface Channel {
  say(word: unknown): void;
  close(): void;
}

export function sleep(env: Env, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      takeBack();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const takeBack = env.after(ms, done);
    signal.addEventListener("abort", done);
  });
}

/** Back-off with full jitter in its upper half: 0.3 s, doubling, at most 8 s. */
export function backoff(attempt: number, random: () => number): number {
  const full = Math.min(8000, 300 * 2 ** Math.min(attempt, 10));
  return full / 2 + (full / 2) * random();
}

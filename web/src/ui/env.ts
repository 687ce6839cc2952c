// The browser as the core's surroundings.

import type { Env } from "../core/env.ts";

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null; // forbidden by the browser's settings
  }
}

export const browser: Env = {
  fetch: (path, init) => fetch(path, { credentials: "same-origin", ...init }),
  after(ms, then) {
    const id = setTimeout(then, ms);
    return () => clearTimeout(id);
  },
  random: Math.random,
  now: Date.now,
  newId: () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  storage: storage(),
  isHidden: () => document.visibilityState === "hidden",
  onVisibility(changed) {
    document.addEventListener("visibilitychange", changed);
    window.addEventListener("pageshow", changed); // back from the freezer of a phone
    return () => {
      document.removeEventListener("visibilitychange", changed);
      window.removeEventListener("pageshow", changed);
    };
  },
  onOnline(changed) {
    window.addEventListener("online", changed);
    return () => window.removeEventListener("online", changed);
  },
  lead(name, begin) {
    if (!navigator.locks) return begin(); // only where the page is not secure: then each tab for itself
    const resigned = new AbortController();
    let end: (() => void) | null = null;
    const reign = () =>
      new Promise<void>((done) => {
        const stop = begin();
        end = () => {
          stop();
          done();
        };
      });
    navigator.locks.request(name, { signal: resigned.signal }, reign).catch(() => undefined);
    return () => (end ? end() : resigned.abort());
  },
  channel(name, hear) {
    if (!navigator.locks) return { say: () => undefined, close: () => undefined };
    const channel = new BroadcastChannel(name);
    channel.onmessage = (event: MessageEvent<unknown>) => hear(event.data);
    return { say: (word) => channel.postMessage(word), close: () => channel.close() };
  },
  frame(then) {
    const id = requestAnimationFrame(then);
    return () => cancelAnimationFrame(id);
  },
};

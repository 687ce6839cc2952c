// The core's environment in a browser.

import type { Env } from "../core/env.ts";

function openStorage(name: "localStorage" | "sessionStorage"): Storage | null {
  try {
    return window[name];
  } catch {
    return null; // disabled in the browser's settings
  }
}

export const browserEnv: Env = {
  fetch: (path, init) => fetch(path, { credentials: "same-origin", ...init }),
  setTimer(ms, callback) {
    const id = setTimeout(callback, ms);
    return () => clearTimeout(id);
  },
  random: Math.random,
  now: Date.now,
  newId: () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
  storage: openStorage("localStorage"),
  tabStorage: openStorage("sessionStorage"),
  onStorageChange(listener) {
    const onStorage = ({ key, newValue }: StorageEvent) => {
      if (key !== null) listener(key, newValue);
    };
    window.addEventListener("storage", onStorage);
    return () => window.removeEventListener("storage", onStorage);
  },
  openLogin() {
    const here = location.pathname + location.search + location.hash;
    location.assign(`/login?next=${encodeURIComponent(here)}&logged_out`);
  },
  isHidden: () => document.visibilityState === "hidden",
  onVisibilityChange(listener) {
    document.addEventListener("visibilitychange", listener);
    window.addEventListener("pageshow", listener); // restored from the back-forward cache
    return () => {
      document.removeEventListener("visibilitychange", listener);
      window.removeEventListener("pageshow", listener);
    };
  },
  onOnline(listener) {
    window.addEventListener("online", listener);
    return () => window.removeEventListener("online", listener);
  },
  electLeader(name, start) {
    if (!navigator.locks) return start(); // insecure context: each tab is its own leader
    const resigned = new AbortController();
    let resign: (() => void) | null = null;
    const lead = () =>
      new Promise<void>((release) => {
        const stop = start();
        resign = () => {
          stop();
          release();
        };
      });
    navigator.locks.request(name, { signal: resigned.signal }, lead).catch(() => undefined);
    return () => (resign ? resign() : resigned.abort());
  },
  openChannel(name, onMessage) {
    if (!navigator.locks) return { send: () => undefined, close: () => undefined };
    const channel = new BroadcastChannel(name);
    channel.onmessage = (event: MessageEvent<unknown>) => onMessage(event.data);
    return { send: (message) => channel.postMessage(message), close: () => channel.close() };
  },
  onNextFrame(callback) {
    const id = requestAnimationFrame(callback);
    return () => cancelAnimationFrame(id);
  },
};

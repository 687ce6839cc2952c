// The core's environment in a browser.

import type { Env } from "../core/env.ts";
import { rootPath, withoutRoot, withRoot } from "./root-path.ts";

/** Before the names of what tabs share: another server may be published below another path of the same host. */
const SCOPE = rootPath && `${rootPath}:`;
const unscoped = (name: string | null): string | null => (name?.startsWith(SCOPE) ? name.slice(SCOPE.length) : null);

function openStorage(name: "localStorage" | "sessionStorage"): Env["storage"] {
  try {
    const storage = window[name];
    if (!SCOPE) return storage;
    return {
      getItem: (key) => storage.getItem(SCOPE + key),
      setItem: (key, value) => storage.setItem(SCOPE + key, value),
      removeItem: (key) => storage.removeItem(SCOPE + key),
      key: (index) => unscoped(storage.key(index)),
      get length() {
        return storage.length;
      },
    };
  } catch {
    return null; // disabled in the browser's settings
  }
}

export const browserEnv: Env = {
  fetch: (path, init) => fetch(withRoot(path), { credentials: "same-origin", ...init }),
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
    const onStorage = (event: StorageEvent) => {
      const key = unscoped(event.key);
      if (key !== null) listener(key, event.newValue);
    };
    window.addEventListener("storage", onStorage);
    return () => window.removeEventListener("storage", onStorage);
  },
  openLogin() {
    const here = withoutRoot(location.pathname) + location.search + location.hash;
    location.assign(withRoot(`/login?next=${encodeURIComponent(here)}&logged_out`));
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
  onPageHide(listener) {
    window.addEventListener("pagehide", listener);
    return () => window.removeEventListener("pagehide", listener);
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
    navigator.locks.request(SCOPE + name, { signal: resigned.signal }, lead).catch(() => undefined);
    return () => (resign ? resign() : resigned.abort());
  },
  openChannel(name, onMessage) {
    if (!navigator.locks) return { send: () => undefined, close: () => undefined };
    const channel = new BroadcastChannel(SCOPE + name);
    channel.onmessage = (event: MessageEvent<unknown>) => onMessage(event.data);
    return { send: (message) => channel.postMessage(message), close: () => channel.close() };
  },
  onNextFrame(callback) {
    const id = requestAnimationFrame(callback);
    return () => cancelAnimationFrame(id);
  },
};

// Loads code on demand. A failed load is retried while the server is away, for a limited time; if the chunk is gone
// because the server was updated, the page reloads itself.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { backoff } from "../core/env.ts";
import { withRoot } from "./root-path.ts";

/** The delays add up to about a minute. */
const MAX_ATTEMPTS = 12;

// biome-ignore lint/suspicious/noExplicitAny: accepts a component with any props
export function lazyComponent<T extends ComponentType<any>>(
  load: () => Promise<{ default: T }>,
): LazyExoticComponent<T> {
  return lazy(() => loadChunk(load));
}

export async function loadChunk<T>(load: () => Promise<T>): Promise<T> {
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      return await load();
    } catch {
      if (await isOutdated()) location.reload();
      reloadStyles();
      await new Promise((resume) => setTimeout(resume, backoff(attempt - 1, Math.random)));
    }
  }
  return load();
}

/** Requests the styles again that could not be loaded: the script of a chunk asks for them once only. */
function reloadStyles(): void {
  for (const link of document.querySelectorAll<HTMLLinkElement>("link[rel=stylesheet]")) {
    if (!link.sheet) link.replaceWith(link.cloneNode());
  }
}

/** Whether the server now serves another build than the one that runs here. */
async function isOutdated(): Promise<boolean> {
  try {
    const response = await fetch(withRoot("/"), { cache: "no-store" });
    const script = document.querySelector<HTMLScriptElement>('script[type="module"]')?.getAttribute("src");
    return response.ok && script != null && !(await response.text()).includes(script);
  } catch {
    return false;
  }
}

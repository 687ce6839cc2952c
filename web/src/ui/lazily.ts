// Parts of the app that are loaded when they are needed. A server that is away is waited for; a part that an update has
// taken away means that the page itself is old: it is loaded anew. Neither leaves a blank page.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { backoff } from "../core/env.ts";

// biome-ignore lint/suspicious/noExplicitAny: props are whatever the component takes
export function lazily<T extends ComponentType<any>>(load: () => Promise<{ default: T }>): LazyExoticComponent<T> {
  return lazy(() => loaded(load));
}

export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await load();
    } catch {
      if (await isOld()) location.reload();
      await new Promise((go) => setTimeout(go, backoff(attempt, Math.random)));
    }
  }
}

/** Whether the server now has another page than this one. */
async function isOld(): Promise<boolean> {
  try {
    const answer = await fetch("/", { cache: "no-store" });
    const mine = document.querySelector<HTMLScriptElement>('script[type="module"]')?.getAttribute("src");
    return answer.ok && mine != null && !(await answer.text()).includes(mine);
  } catch {
    return false;
  }
}

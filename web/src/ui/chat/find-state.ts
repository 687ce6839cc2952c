// Finding in the shown chat: whether the panel is open, and the text whose places are highlighted.

import { Store } from "../../core/store.ts";

export const findOpen = new Store(false);
export const findQuery = new Store("");

/** The field of the panel, for which the browser's own search stays available. */
export const FIND_FIELD = "find-in-chat";

export function openFind(): void {
  findOpen.set(true);
  document.getElementById(FIND_FIELD)?.focus(); // it may be open
}

export function closeFind(): void {
  findOpen.set(false);
  findQuery.set("");
}

// Which chats of the list are selected.

import { toggleSelected } from "../../core/selection.ts";
import { Store } from "../../core/store.ts";
import { openSidebar, sidebarCollapsed, toggleSidebar } from "./sidebar-state.ts";

/** null: chats are not being selected. */
export const selectedChats = new Store<ReadonlySet<string> | null>(null);

/** The chat that was selected or deselected last: a range begins there. */
const anchor = new Store<string | null>(null);

/** Selects or deselects a chat, or with `range` all from the last one to it. */
export function toggleChat(sid: string, order: readonly string[], range: boolean): void {
  selectedChats.set(toggleSelected(selectedChats.get() ?? new Set(), sid, order, range ? anchor.get() : null));
  anchor.set(sid);
}

/** Starts selecting, in the list of chats. */
export function startSelecting(sid: string | null): void {
  if (sidebarCollapsed.get()) toggleSidebar();
  openSidebar();
  anchor.set(sid);
  selectedChats.set(new Set(sid === null ? [] : [sid]));
}

export const stopSelecting = (): void => selectedChats.set(null);

// Whether the files are shown beside the chat, and which one was asked for.

import { createContext, useContext } from "react";
import { Store } from "../../core/store.ts";

const STORAGE_KEY = "holdfast.files";
/** On narrower screens the files cover the chat, so they are shown only when somebody asks for them. */
export const NARROW = "(max-width: 960px)";

export type WorkspaceView = "files" | "changes" | "trash";
/** What the panel shows. */
export const workspaceView = new Store<WorkspaceView>("files");
export const workspaceOpen = new Store(readOpen());
/** Whether the panel takes the focus when it appears. */
export const wantsFocus = new Store(false);
/** A file that a message names, as the agent named it. */
export const wantedFile = new Store<{ readonly named: string } | null>(null);

export function showWorkspace(open: boolean): void {
  workspaceOpen.set(open);
  if (!open) wantedFile.set(null);
  if (matchMedia(NARROW).matches) return;
  try {
    if (open) localStorage.setItem(STORAGE_KEY, "open");
    else localStorage.removeItem(STORAGE_KEY);
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
}

function readOpen(): boolean {
  try {
    return !matchMedia(NARROW).matches && localStorage.getItem(STORAGE_KEY) === "open";
  } catch {
    return false;
  }
}

export function openNamedFile(named: string): void {
  wantedFile.set({ named });
  wantsFocus.set(true);
  showWorkspace(true);
}

const OpenFile = createContext<((named: string) => void) | null>(null);
export const OpenFileProvider = OpenFile.Provider;
/** Shows a file that a message names; null where no files are shown, as in comparisons. */
export const useOpenFile = () => useContext(OpenFile);

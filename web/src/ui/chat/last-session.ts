// Remembers the session that was open last in this tab, so that a new chat can name it as its predecessor.

import { rootPath } from "../root-path.ts";

const STORAGE_KEY = `${rootPath}holdfast.last`;

export function rememberSession(sid: string): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, sid);
  } catch {
    // Storage is disabled: the next chat has no predecessor.
  }
}

export function lastSession(): string | null {
  try {
    return sessionStorage.getItem(STORAGE_KEY);
  } catch {
    return null;
  }
}

// A short confirmation of an action, with a way to undo it. One is shown at a time, for a few seconds.

import type { Env } from "./env.ts";
import { Store } from "./store.ts";

export interface Toast {
  readonly text: string;
  readonly action?: { readonly name: string; readonly run: () => void } | undefined;
  /** The chat whose last turn it is about: it is outdated elsewhere, and once that chat goes on. */
  readonly sid?: string | undefined;
}

const SHOWN_MS = 8000;
const CHANGES_TURNS = /^\/api\/sessions\/[^/]+(\/(undo|redo|runs|retry|edit))?$/;

export class Toasts {
  readonly state = new Store<Toast | null>(null);
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly env: Env) {}

  show(text: string, action?: Toast["action"], sid?: string): void {
    this.cancelTimer?.();
    this.state.set({ text, action, sid });
    this.cancelTimer = this.env.setTimer(SHOWN_MS, this.dismiss);
  }

  /** Shows what is going on, until another toast takes its place or it is dismissed. */
  showProgress(text: string): void {
    this.cancelTimer?.();
    this.state.set({ text });
  }

  /** Dismisses a toast about another chat. */
  leaveChat(shown: string | null): void {
    const sid = this.state.get()?.sid;
    if (sid !== undefined && sid !== shown) this.dismiss();
  }

  /** Dismisses a toast about a chat that was changed by a request to this path. */
  onWrite(path: string): void {
    const sid = this.state.get()?.sid;
    if (sid !== undefined && CHANGES_TURNS.test(path) && path.includes(sid)) this.dismiss();
  }

  dismiss = (): void => {
    this.cancelTimer?.();
    this.state.set(null);
  };
}

// A short confirmation of an action, with a way to undo it. One is shown at a time, for a few seconds.

import type { Env } from "./env.ts";
import { Store } from "./store.ts";

export interface Toast {
  readonly text: string;
  readonly action?: { readonly name: string; readonly run: () => void } | undefined;
}

const SHOWN_MS = 8000;

export class Toasts {
  readonly state = new Store<Toast | null>(null);
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly env: Env) {}

  show(text: string, action?: Toast["action"]): void {
    this.cancelTimer?.();
    this.state.set({ text, action });
    this.cancelTimer = this.env.setTimer(SHOWN_MS, this.dismiss);
  }

  dismiss = (): void => {
    this.cancelTimer?.();
    this.state.set(null);
  };
}

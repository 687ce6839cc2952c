// Actions on a whole turn that say what they did.

import type { App } from "../../core/app.ts";
import type { Thread } from "../../core/thread.ts";
import type { FilePart } from "../../core/types.ts";
import { rescueFocus } from "./focus.ts";

export async function undoTurn({ toasts }: App, thread: Thread): Promise<void> {
  if (await thread.undo())
    toasts.show("Message undone", { name: "Redo", run: () => void redoTurn(thread) }, thread.sid);
  rescueFocus();
}

export async function redoTurn(thread: Thread): Promise<void> {
  await thread.redo();
  rescueFocus();
}

/** Answers a message again. Says where the later messages are: they stay with the version that was shown. */
export async function regenerate({ toasts }: App, thread: Thread, mid: string, model?: string): Promise<void> {
  const hidesLater = thread.state.get().messages.at(-1)?.id !== mid;
  if ((await thread.retry(mid, model)) && hidesLater) reportOtherVersion(toasts, thread, mid);
}

/** Changes a message that was sent. Returns whether the server accepted it. */
export async function editMessage(
  { toasts }: App,
  thread: Thread,
  mid: string,
  text: string,
  files: readonly FilePart[],
): Promise<boolean> {
  const hidesLater = (thread.state.get().messages.at(-2)?.id ?? mid) !== mid;
  if (!(await thread.edit(mid, text, files))) return false;
  if (hidesLater) reportOtherVersion(toasts, thread, mid);
  return true;
}

/** Says where the later messages are, and leads there. */
export function reportOtherVersion(toasts: App["toasts"], thread: Thread, mid: string): void {
  const show = { name: "Show", run: () => void thread.switchBranch(mid) };
  toasts.show("Later messages are in the previous version", show, thread.sid);
}

export async function compactContext({ toasts }: App, thread: Thread): Promise<void> {
  toasts.showProgress("Summarizing older messages…");
  if (await thread.compact()) toasts.show("Older messages summarized");
  else toasts.dismiss();
}

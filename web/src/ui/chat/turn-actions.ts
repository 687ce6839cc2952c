// Actions on a whole turn that say what they did.

import type { App } from "../../core/app.ts";
import type { Thread } from "../../core/thread.ts";

export async function undoTurn({ toasts }: App, thread: Thread): Promise<void> {
  if (await thread.undo()) toasts.show("Turn removed", { name: "Redo", run: () => void thread.redo() });
}

export async function compactContext({ toasts }: App, thread: Thread): Promise<void> {
  toasts.show("Compacting context…");
  if (await thread.compact()) toasts.show("Context compacted: earlier messages are summarized for the model");
  else toasts.dismiss();
}

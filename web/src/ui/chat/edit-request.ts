// Asks for the editor of a message: of one that was sent, by its id, or of a queued one, by the id of its run.

import { Store } from "../../core/store.ts";
import type { Thread } from "../../core/thread.ts";

export const editRequest = new Store<string | null>(null);

/** Opens the editor of the message that the user sent last. */
export function editLastMessage(thread: Thread): void {
  const { session, messages } = thread.state.get();
  const queued = session?.queued_runs.at(-1)?.run.id;
  const sent = messages.findLast(({ role }) => role === "user")?.id;
  editRequest.set(queued ?? sent ?? null);
}

// Actions on a whole chat, from its menu and from the command palette.

import type { App } from "../../core/app.ts";
import type { Session } from "../../core/types.ts";
import { askText } from "../dialogs.ts";
import { withoutRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";

export async function renameChat({ sessions }: App, { id, title }: Session): Promise<void> {
  const text = (await askText("Rename chat", "Title", title))?.trim();
  if (text) await sessions.patch(id, { title: text });
}

/** Leaves the chat if it is the one that is shown. */
export function leaveChat(app: App, sid: string): void {
  if (isShown(app, sid)) navigate("/");
}

/** Archives a chat, or takes it out of the archive. */
export async function toggleArchived(app: App, { id, archived }: Session): Promise<void> {
  const { sessions } = app;
  if (!(await sessions.patch(id, { archived: !archived }))) return;
  if (archived) {
    if (isShown(app, id)) sessions.showArchived(false); // the list that it is in now
    return;
  }
  leaveChat(app, id);
  const undo = () => void sessions.patch(id, { archived: false });
  app.toasts.show("Chat archived", { name: "Undo", run: undo });
}

const isShown = ({ thread }: App, sid: string): boolean =>
  thread.get()?.sid === sid && withoutRoot(location.pathname) === `/c/${sid}`;

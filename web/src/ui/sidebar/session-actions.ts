// Actions on a whole chat, from its menu and from the command palette.

import type { Api } from "../../core/api.ts";
import type { MemoryStatusResponse, SettingsResponse } from "../../core/api-types.ts";
import type { App } from "../../core/app.ts";
import type { Session } from "../../core/types.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withoutRoot, withRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";

export async function renameChat({ sessions }: App, { id, title }: Session): Promise<void> {
  const text = (await askText("Rename chat", "Title", title))?.trim();
  if (text) await sessions.patch(id, { title: text });
}

export async function generateTitle({ sessions, toasts }: App, { id, title }: Session): Promise<void> {
  toasts.show("Generating a title…");
  const fresh = await sessions.generateTitle(id);
  if (fresh === null) return toasts.dismiss();
  if (fresh === title) return toasts.show("The title is the same");
  const undo = () => void sessions.patch(id, { title });
  toasts.show(`Renamed to “${fresh}”`, title ? { name: "Undo", run: undo } : undefined);
}

/** Leaves the chat if it is the one that is shown. */
function leaveChat(app: App, sid: string): void {
  if (isShown(app, sid)) navigate("/");
}

/** Deletes chats, unless that is undone in the next seconds. */
export function deleteChats(app: App, sids: readonly string[], forgetMemories: boolean): void {
  const shown = sids.find((sid) => isShown(app, sid));
  app.deletions.add(sids, forgetMemories);
  if (shown) navigate("/");
  const undo = () => {
    app.deletions.undo(sids);
    if (shown) navigate(`/c/${shown}`);
  };
  app.toasts.show(sids.length === 1 ? "Chat deleted" : `${sids.length} chats deleted`, { name: "Undo", run: undo });
}

/** Deletes a chat after a question, unless that is undone in the next seconds. */
export async function deleteChat(app: App, { id, title }: Session): Promise<void> {
  const hasMemories = await mayHaveMemories(app.api, id);
  const { confirmed, optionChecked } = await askConfirmation(
    title ? `Delete “${title}”?` : "Delete this chat?",
    "Its messages and files are deleted, and shared links to it stop working. You can undo this for a few seconds.",
    "Delete",
    hasMemories ? "Also delete its memories" : undefined,
  );
  if (confirmed) deleteChats(app, [id], optionChecked);
}

/** Whether the chat has memories, or turns that are remembered before it is deleted. */
async function mayHaveMemories(api: Api, sid: string): Promise<boolean> {
  try {
    if (!(await api.get<SettingsResponse>("/api/settings")).memory) return false;
    const status = await api.get<MemoryStatusResponse>(`/api/sessions/${sid}/memory`);
    return status.committed_turns + status.dirty_turns > 0;
  } catch {
    return false; // deleting it will hardly work either
  }
}

/** The formats in which a chat can be saved, with their names. */
export function exportActions(sid: string): readonly (readonly [name: string, run: () => void])[] {
  const save = (format: string) => () => location.assign(withRoot(`/api/sessions/${sid}/export?format=${format}`));
  return [
    ["Export as Markdown", save("markdown")],
    ["Export as HTML", save("html")],
    ["Export as JSON Lines", save("json")],
  ];
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

/** Archives several chats, or takes them out of the archive. Returns whether all of them were changed. */
export async function archiveChats(app: App, chats: readonly Session[], archived: boolean): Promise<boolean> {
  const { sessions, toasts } = app;
  const others = chats.filter((chat) => chat.archived !== archived);
  const changed = await sessions.patchAll(others, () => ({ archived }));
  if (archived) for (const { id } of changed) leaveChat(app, id);
  const count = `${changed.length} ${changed.length === 1 ? "chat" : "chats"}`;
  const undo = () => void sessions.patchAll(changed, () => ({ archived: !archived }));
  if (changed.length) toasts.show(`${count} ${archived ? "archived" : "unarchived"}`, { name: "Undo", run: undo });
  return changed.length === others.length;
}

const isShown = ({ thread }: App, sid: string): boolean =>
  thread.get()?.sid === sid && withoutRoot(location.pathname) === `/c/${sid}`;

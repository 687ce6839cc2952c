import { useState } from "react";
import type { Api } from "../../core/api.ts";
import type { MemoryStatusResponse, SettingsResponse } from "../../core/api-types.ts";
import type { Session } from "../../core/types.ts";
import { printChat } from "../chat/print-chat.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withRoot } from "../root-path.ts";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import { Menu, type MenuItem } from "../widgets/Menu.tsx";
import { startSelecting } from "./selection-state.ts";
import { deleteChats, generateTitle, renameChat, toggleArchived } from "./session-actions.ts";
import { ShareDialog } from "./share-dialog.ts";

const MemoryDialog = lazyOverlay(() => import("./MemoryDialog.tsx"));
const ProjectDialog = lazyOverlay(() => import("./ProjectDialog.tsx"));

interface Props {
  session: Session;
  /** Items for the chat that is shown. */
  more?: readonly MenuItem[];
}

export function SessionMenu({ session, more = [] }: Props) {
  const app = useApp();
  const { sessions } = app;
  const { id, title, pinned, archived } = session;
  const [memoryOpen, setMemoryOpen] = useState(false);
  const [projectOpen, setProjectOpen] = useState(false);
  const [shareOpen, setShareOpen] = useState(false);
  const editTags = async () => {
    const text = await askText("Edit tags", "Tags, comma-separated", session.tags.join(", "));
    if (text === null) return;
    const tags = text.split(",").map((tag) => tag.trim());
    await sessions.patch(id, { tags: tags.filter(Boolean) });
  };
  const download = (format: string) => location.assign(withRoot(`/api/sessions/${id}/export?format=${format}`));
  const remove = async () => {
    const hasMemories = await mayHaveMemories(app.api, id);
    const { confirmed, optionChecked } = await askConfirmation(
      title ? `Delete “${title}”?` : "Delete this chat?",
      "Its messages and files are deleted, and shared links to it stop working. You can undo this for a few seconds.",
      "Delete",
      hasMemories ? "Also delete its memories" : undefined,
    );
    if (confirmed) deleteChats(app, [id], optionChecked);
  };
  return (
    <>
      <Menu
        name={`Options for ${title || "this chat"}`}
        items={[
          ...more,
          { name: "Rename", icon: "edit", run: () => void renameChat(app, session) },
          { name: "Generate title", icon: "letter", run: () => void generateTitle(app, session) },
          { name: pinned ? "Unpin" : "Pin", icon: "pin", run: () => void sessions.patch(id, { pinned: !pinned }) },
          { name: "Move to project", icon: "project", run: () => setProjectOpen(true) },
          { name: "Edit tags", icon: "tag", run: () => void editTags() },
          { name: archived ? "Unarchive" : "Archive", icon: "archive", run: () => void toggleArchived(app, session) },
          { name: "Select chats", icon: "check", run: () => startSelecting(id) },
          { name: "Memory", icon: "spark", run: () => setMemoryOpen(true) },
          { name: "Share", icon: "share", run: () => setShareOpen(true) },
          { name: "Export as Markdown", icon: "file", run: () => download("markdown") },
          { name: "Export as HTML", icon: "file", run: () => download("html") },
          { name: "Export as JSON Lines", icon: "file", run: () => download("json") },
          { name: "Print", icon: "printer", run: () => printChat(app, id) },
          { name: "Delete", icon: "trash", danger: true, run: () => void remove() },
        ]}
      />
      {projectOpen && <ProjectDialog chats={[session]} onClose={() => setProjectOpen(false)} />}
      {shareOpen && <ShareDialog sid={id} onClose={() => setShareOpen(false)} />}
      {memoryOpen && <MemoryDialog sid={id} onClose={() => setMemoryOpen(false)} />}
    </>
  );
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

import { useState } from "react";
import type { Session } from "../../core/types.ts";
import { printChat } from "../chat/print-chat.ts";
import { useApp } from "../context.ts";
import { askText } from "../dialogs.ts";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import { Menu, type MenuItem } from "../widgets/Menu.tsx";
import { startSelecting } from "./selection-state.ts";
import { deleteChat, exportActions, generateTitle, renameChat, toggleArchived } from "./session-actions.ts";
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
    const text = await askText("Edit tags", "Tags, comma-separated", session.tags.join(", "), { optional: true });
    if (text === null) return;
    const tags = text.split(",").map((tag) => tag.trim());
    await sessions.patch(id, { tags: tags.filter(Boolean) });
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
          ...exportActions(id).map(([name, run]) => ({ name, icon: "file", run }) as const),
          { name: "Print", icon: "printer", run: () => printChat(app, id) },
          { name: "Delete", icon: "trash", danger: true, run: () => void deleteChat(app, session) },
        ]}
      />
      {projectOpen && <ProjectDialog chats={[session]} onClose={() => setProjectOpen(false)} />}
      {shareOpen && <ShareDialog sid={id} onClose={() => setShareOpen(false)} />}
      {memoryOpen && <MemoryDialog sid={id} onClose={() => setMemoryOpen(false)} />}
    </>
  );
}

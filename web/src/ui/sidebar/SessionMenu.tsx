import { useState } from "react";
import type { Session } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withoutRoot, withRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";
import { Menu } from "../widgets/Menu.tsx";
import { MemoryDialog } from "./MemoryDialog.tsx";

export function SessionMenu({ session }: { session: Session }) {
  const app = useApp();
  const { sessions } = app;
  const { id, title, pinned, archived } = session;
  const [memoryOpen, setMemoryOpen] = useState(false);
  const isOpen = () => withoutRoot(location.pathname) === `/c/${id}`;
  const leave = () => {
    if (isOpen()) navigate("/");
  };
  const rename = async () => {
    const text = (await askText("Rename chat", "Title", title))?.trim();
    if (text) await sessions.patch(id, { title: text });
  };
  const editTags = async () => {
    const text = await askText("Edit tags", "Tags, comma-separated", session.tags.join(", "));
    if (text === null) return;
    const tags = text.split(",").map((tag) => tag.trim());
    await sessions.patch(id, { tags: tags.filter(Boolean) });
  };
  const moveToProject = async () => {
    const name = await askText("Move to project", "Project (optional)", session.project ?? "");
    if (name !== null) await sessions.patch(id, { project: name.trim() || null });
  };
  const archive = async () => {
    if (!(await sessions.patch(id, { archived: !archived }))) return;
    if (archived) {
      if (isOpen()) sessions.showArchived(false); // the list that it is in now
      return;
    }
    leave();
    const undo = () => void sessions.patch(id, { archived: false });
    app.toasts.show("Chat archived", { name: "Undo", run: undo });
  };
  const remove = async () => {
    const { confirmed, optionChecked } = await askConfirmation(
      title ? `Delete “${title}”?` : "Delete this chat?",
      "Its messages, files and recordings are permanently deleted. This cannot be undone.",
      "Delete",
      "Also delete its memories",
    );
    if (!confirmed || !(await sessions.remove(id, optionChecked))) return;
    app.discardUnsent(id);
    leave();
  };
  return (
    <>
      <Menu
        name={`Options for ${title || "this chat"}`}
        items={[
          { name: "Rename", icon: "edit", run: () => void rename() },
          { name: pinned ? "Unpin" : "Pin", icon: "pin", run: () => void sessions.patch(id, { pinned: !pinned }) },
          { name: "Move to project", icon: "folder", run: () => void moveToProject() },
          { name: "Edit tags", icon: "tag", run: () => void editTags() },
          { name: archived ? "Unarchive" : "Archive", icon: "archive", run: () => void archive() },
          { name: "Memory", icon: "brain", run: () => setMemoryOpen(true) },
          { name: "Export", icon: "file", run: () => location.assign(withRoot(`/api/sessions/${id}/export`)) },
          { name: "Delete", icon: "trash", danger: true, run: () => void remove() },
        ]}
      />
      {memoryOpen && <MemoryDialog sid={id} onClose={() => setMemoryOpen(false)} />}
    </>
  );
}

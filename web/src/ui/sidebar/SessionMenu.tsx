import { useState } from "react";
import type { Session } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withRoot } from "../root-path.ts";
import { Menu } from "../widgets/Menu.tsx";
import { MemoryDialog } from "./MemoryDialog.tsx";
import { ProjectDialog } from "./ProjectDialog.tsx";
import { leaveChat, renameChat, toggleArchived } from "./session-actions.ts";

export function SessionMenu({ session }: { session: Session }) {
  const app = useApp();
  const { sessions } = app;
  const { id, title, pinned, archived } = session;
  const [memoryOpen, setMemoryOpen] = useState(false);
  const [projectOpen, setProjectOpen] = useState(false);
  const editTags = async () => {
    const text = await askText("Edit tags", "Tags, comma-separated", session.tags.join(", "));
    if (text === null) return;
    const tags = text.split(",").map((tag) => tag.trim());
    await sessions.patch(id, { tags: tags.filter(Boolean) });
  };
  const download = (format: string) => location.assign(withRoot(`/api/sessions/${id}/export?format=${format}`));
  const remove = async () => {
    const { confirmed, optionChecked } = await askConfirmation(
      title ? `Delete “${title}”?` : "Delete this chat?",
      "Its messages and files are permanently deleted. This cannot be undone.",
      "Delete",
      "Also delete its memories",
    );
    if (!confirmed || !(await sessions.remove(id, optionChecked))) return;
    app.discardUnsent(id);
    leaveChat(app, id);
  };
  return (
    <>
      <Menu
        name={`Options for ${title || "this chat"}`}
        items={[
          { name: "Rename", icon: "edit", run: () => void renameChat(app, session) },
          { name: pinned ? "Unpin" : "Pin", icon: "pin", run: () => void sessions.patch(id, { pinned: !pinned }) },
          { name: "Move to project", icon: "folder", run: () => setProjectOpen(true) },
          { name: "Edit tags", icon: "tag", run: () => void editTags() },
          { name: archived ? "Unarchive" : "Archive", icon: "archive", run: () => void toggleArchived(app, session) },
          { name: "Memory", icon: "brain", run: () => setMemoryOpen(true) },
          { name: "Export as Markdown", icon: "file", run: () => download("markdown") },
          { name: "Export as JSON", icon: "file", run: () => download("json") },
          { name: "Delete", icon: "trash", danger: true, run: () => void remove() },
        ]}
      />
      {projectOpen && <ProjectDialog session={session} onClose={() => setProjectOpen(false)} />}
      {memoryOpen && <MemoryDialog sid={id} onClose={() => setMemoryOpen(false)} />}
    </>
  );
}

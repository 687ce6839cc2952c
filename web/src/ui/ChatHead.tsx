import { useState } from "react";
import type { Thread } from "../core/thread.ts";
import type { Session } from "../core/wire.ts";
import { useApp } from "./context.ts";
import { MemoryDialog } from "./MemoryDialog.tsx";
import { navigate } from "./router.tsx";
import { ask, confirmWith, toggleSidebar } from "./shell.ts";
import { IconButton, Menu } from "./widgets.tsx";

export function ChatHead({ thread, session }: { thread: Thread | null; session: Session | null }) {
  return (
    <header className="head">
      <IconButton name="Show sessions" icon="menu" className="only-narrow" onClick={toggleSidebar} />
      <h1 className="head-title">{thread ? session?.title || "Chat" : "New chat"}</h1>
      {session && <SourceBadge session={session} />}
      {thread && session && (
        <>
          <IconButton name="Undo" icon="undo" disabled={session.head === null} onClick={() => void thread.undo()} />
          <IconButton name="Redo" icon="redo" disabled={!session.can_redo} onClick={() => void thread.redo()} />
          <SessionMenu session={session} />
        </>
      )}
    </header>
  );
}

/** Where a session came from, if not from here. */
export function SourceBadge({ session }: { session: Session }) {
  if (session.settings?.source !== "openai") return null;
  return (
    <span className="source-badge" title="Came through the OpenAI-compatible API">
      API
    </span>
  );
}

export function SessionMenu({ session }: { session: Session }) {
  const app = useApp();
  const { sessions } = app;
  const leave = () => {
    if (location.pathname === `/c/${session.id}`) navigate("/");
  };
  const rename = async () => {
    const title = await ask("Rename", "Title", session.title);
    if (title?.trim()) await sessions.patch(session.id, { title: title.trim() });
  };
  const tag = async () => {
    const tags = await ask("Tags", "Tags, with commas", session.tags.join(", "));
    if (tags !== null) {
      await sessions.patch(session.id, {
        tags: tags
          .split(",")
          .map((item) => item.trim())
          .filter(Boolean),
      });
    }
  };
  const project = async () => {
    const name = await ask("Project", "Name of the project, empty for none", session.project ?? "");
    if (name !== null) await sessions.patch(session.id, { project: name.trim() || null });
  };
  const remove = async () => {
    const forget = await confirmWith(
      "Delete this chat?",
      "Its messages, journals and files are erased. What was learnt from it is kept, unless you say otherwise.",
      "Delete",
      "Forget what was learnt from it too",
    );
    if (forget !== null && (await sessions.remove(session.id, forget))) leave();
  };
  const [memory, setMemory] = useState(false);
  return (
    <>
      <Menu
        name={`More about ${session.title || "this chat"}`}
        items={[
          { name: "Rename", icon: "edit", run: () => void rename() },
          {
            name: session.pinned ? "Unpin" : "Pin",
            icon: "pin",
            run: () => void sessions.patch(session.id, { pinned: !session.pinned }),
          },
          { name: "Project", icon: "fork", run: () => void project() },
          { name: "Tags", icon: "spark", run: () => void tag() },
          {
            name: session.archived ? "Take out of the archive" : "Archive",
            icon: "archive",
            run: () => void sessions.patch(session.id, { archived: !session.archived }).then((done) => done && leave()),
          },
          { name: "Memory", icon: "brain", run: () => setMemory(true) },
          { name: "Export", icon: "file", run: () => location.assign(`/api/sessions/${session.id}/export`) },
          { name: "Delete", icon: "trash", danger: true, run: () => void remove() },
        ]}
      />
      {memory && <MemoryDialog sid={session.id} onClose={() => setMemory(false)} />}
    </>
  );
}

// Chats are dragged from the list onto a project, or onto the chats without one. The menu of a chat does the same.

import { type DragEvent, type ReactNode, useState } from "react";
import type { Session } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { loadChunk } from "../lazy-load.ts";
import { classNames } from "../widgets/class-names.ts";
import styles from "./Sidebar.module.css";
import { selectedChats, stopSelecting } from "./selection-state.ts";

const CHATS = "application/x-holdfast-chats";

/** What makes a row of the list draggable: it takes the other selected chats with it. */
export function dragged(sid: string) {
  return {
    draggable: true,
    onDragStart: (event: DragEvent) => {
      const selected = selectedChats.get();
      const sids = selected?.has(sid) ? [...selected] : [sid];
      event.dataTransfer.setData(CHATS, JSON.stringify(sids));
      event.dataTransfer.effectAllowed = "copyMove";
    },
  };
}

interface Props {
  name: string;
  /** null: chats that are dropped here leave their project. */
  project: string | null;
  /** Chats that can be dropped. */
  sessions: readonly Session[];
  children: ReactNode;
}

export function ChatDropTarget({ name, project, sessions, children }: Props) {
  const app = useApp();
  const [over, setOver] = useState(false);
  const drop = async (sids: readonly string[]) => {
    const chats = sessions.filter(({ id }) => sids.includes(id));
    const selection = selectedChats.get();
    const { moveChats } = await loadChunk(() => import("../projects/project-actions.ts"));
    // A selection that was begun or changed meanwhile goes on.
    if ((await moveChats(app, chats, project)) && selection && selectedChats.get() === selection) stopSelecting();
  };
  return (
    <section
      aria-label={name}
      className={classNames(styles.group, over && styles.dropping)}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(CHATS)) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "move";
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget))) setOver(false);
      }}
      onDrop={(event) => {
        const data = event.dataTransfer.getData(CHATS);
        setOver(false);
        if (!data) return;
        event.preventDefault();
        void drop(JSON.parse(data) as string[]);
      }}
    >
      {children}
    </section>
  );
}

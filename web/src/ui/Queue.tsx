// Messages that wait for the run before them: they can still be changed or taken back.

import { useState } from "react";
import type { Thread } from "../core/thread.ts";
import type { Queued } from "../core/wire.ts";
import { EditBox } from "./EditBox.tsx";
import { textOf } from "./Message.tsx";
import { IconButton } from "./widgets.tsx";

export function Queue({ queued, thread }: { queued: readonly Queued[]; thread: Thread }) {
  if (!queued.length) return null;
  return (
    <ol className="queue" aria-label="Queued messages">
      {queued.map((item) => (
        <QueuedItem key={item.run.id} item={item} thread={thread} />
      ))}
    </ol>
  );
}

function QueuedItem({ item, thread }: { item: Queued; thread: Thread }) {
  const [editing, setEditing] = useState(false);
  const text = textOf(item.message.parts);
  if (editing) {
    return (
      <li>
        <EditBox
          label="Edit queued message"
          text={text}
          action="Save"
          onCancel={() => setEditing(false)}
          onDone={(changed) => {
            setEditing(false);
            void thread.editQueued(item.run.id, changed);
          }}
        />
      </li>
    );
  }
  return (
    <li className="queued">
      <span className="quiet">Next</span>
      <span className="queued-text">{text}</span>
      <IconButton name="Edit queued message" icon="edit" onClick={() => setEditing(true)} />
      <IconButton name="Remove from the queue" icon="close" onClick={() => void thread.cancelQueued(item.run.id)} />
    </li>
  );
}

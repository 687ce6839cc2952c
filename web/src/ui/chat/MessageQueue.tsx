// Messages queued behind the current run. They can be edited and removed.

import { useState } from "react";
import type { Thread } from "../../core/thread.ts";
import type { QueuedRun } from "../../core/types.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import { MessageEditor } from "./MessageEditor.tsx";
import { textOf } from "./MessageParts.tsx";
import styles from "./MessageQueue.module.css";

export function MessageQueue({ queued, thread }: { queued: readonly QueuedRun[]; thread: Thread }) {
  if (!queued.length) return null;
  return (
    <ol className={styles.queue} aria-label="Queued messages">
      {queued.map((item) => (
        <QueuedMessage key={item.run.id} item={item} thread={thread} />
      ))}
    </ol>
  );
}

function QueuedMessage({ item, thread }: { item: QueuedRun; thread: Thread }) {
  const [editing, setEditing] = useState(false);
  const content = textOf(item.message.parts);
  const files = item.message.parts.filter((part) => part.type === "file");
  if (editing) {
    return (
      <li>
        <MessageEditor
          label="Edit queued message"
          text={content}
          hasFiles={files.length > 0}
          action="Save"
          onCancel={() => setEditing(false)}
          onDone={(edited) => {
            setEditing(false);
            void thread.editQueued(item.run.id, edited, files);
          }}
        />
      </li>
    );
  }
  return (
    <li className={styles.queued}>
      <span className={text.quiet}>Queued</span>
      <span className={classNames(text.ellipsis, styles.text)}>{content}</span>
      {files.map((file) => (
        <span key={file.file_id} className={classNames(text.chip, styles.file)} title={file.name}>
          <Icon name="file" />
          <span className={text.ellipsis}>{file.name}</span>
        </span>
      ))}
      <IconButton name="Edit queued message" icon="edit" onClick={() => setEditing(true)} />
      <IconButton name="Remove from queue" icon="close" onClick={() => void thread.cancelQueued(item.run.id)} />
    </li>
  );
}

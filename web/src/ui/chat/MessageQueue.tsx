// Messages queued behind the current run. They can be edited and removed. Their order is the
// server's (`engine.transactions.run_queue`).

import { useEffect, useState } from "react";
import { editDraft, NO_DRAFT } from "../../core/drafts.ts";
import type { Thread } from "../../core/thread.ts";
import type { QueuedRun } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import { editRequest } from "./edit-request.ts";
import { focusMessageBox } from "./focus.ts";
import { MessageEditor } from "./MessageEditor.tsx";
import { textOf } from "./MessageParts.tsx";
import styles from "./MessageQueue.module.css";

export default function MessageQueue({ queued, thread }: { queued: readonly QueuedRun[]; thread: Thread }) {
  const { drafts } = useApp();
  const [editing, setEditing] = useState<string | null>(null); // one editor at a time
  const requested = useStore(editRequest);
  useEffect(() => {
    if (!queued.some((item) => item.run.id === requested && item.message.parts.length)) return;
    editRequest.set(null);
    setEditing(requested);
  }, [queued, requested]);
  const gone = editing !== null && !queued.some((item) => item.run.id === editing);
  useEffect(() => {
    if (!gone) return;
    setEditing(null);
    const edit = drafts.read(editDraft(editing)).text;
    drafts.write(editDraft(editing), NO_DRAFT);
    if (!edit) return;
    drafts.append(thread.sid, edit);
    thread.reportProblem("That message is no longer queued. Your edit is in the message box.");
    focusMessageBox();
  }, [gone, editing, drafts, thread]);
  if (!queued.length) return null;
  return (
    <ol className={styles.queue} aria-label="Queued messages">
      {queued.map((item) => (
        <QueuedMessage
          key={item.run.id}
          item={item}
          thread={thread}
          editing={editing === item.run.id}
          onEdit={(open) => setEditing(open ? item.run.id : null)}
        />
      ))}
    </ol>
  );
}

interface QueuedMessageProps {
  item: QueuedRun;
  thread: Thread;
  editing: boolean;
  onEdit: (open: boolean) => void;
}

function QueuedMessage({ item, thread, editing, onEdit }: QueuedMessageProps) {
  const { drafts, outbox, toasts } = useApp();
  const content = textOf(item.message.parts);
  const steers = item.run.steers !== null;
  const taken = steers && item.run.cancel_requested; // its place in the answer is being stored
  const omitted = item.message.parts.length === 0; // too long to be sent with the session
  const files = item.message.parts.filter((part) => part.type === "file");
  const draftId = editDraft(item.run.id);
  const remove = async () => {
    focusMessageBox(); // the button is about to go
    if (!(await thread.cancelQueued(item.run.id))) return;
    if (omitted) return;
    const undo = () => void outbox.add(thread.sid, { text: content, files, model: thread.model });
    toasts.show("Removed from queue", { name: "Undo", run: undo }, thread.sid);
  };
  if (editing) {
    return (
      <li>
        <MessageEditor
          label="Edit queued message"
          text={content}
          hasFiles={files.length > 0}
          action="Save"
          draftId={draftId}
          autoFocus
          onClose={() => {
            onEdit(false);
            focusMessageBox();
          }}
          onDone={async (edited) => {
            if (!(await thread.editQueued(item.run.id, edited, files))) return; // the edit stays, or moves on
            drafts.write(draftId, NO_DRAFT);
            onEdit(false);
            focusMessageBox();
          }}
        />
      </li>
    );
  }
  return (
    <li className={styles.queued}>
      <span
        className={text.quiet}
        title={
          steers ? "The model reads it at its next step. If there is none, it is sent as the next message." : undefined
        }
      >
        {steers ? "Adding to answer" : "Queued"}
      </span>
      <span className={classNames(text.ellipsis, styles.text)}>{omitted ? "Long message" : content}</span>
      {files.map((file) => (
        <span key={file.file_id} className={classNames(text.chip, styles.file)} title={file.name}>
          <Icon name="file" />
          <span className={text.ellipsis}>{file.name}</span>
        </span>
      ))}
      {!omitted && !taken && <IconButton name="Edit queued message" icon="edit" onClick={() => onEdit(true)} />}
      {!taken && <IconButton name="Remove from queue" icon="close" onClick={() => void remove()} />}
    </li>
  );
}

// Edits the text of an answer in place. What is saved is another version of it.

import { editDraft, NO_DRAFT } from "../../core/drafts.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { useApp } from "../context.ts";
import { focusMessageBox } from "./focus.ts";
import styles from "./Message.module.css";
import { MessageEditor } from "./MessageEditor.tsx";
import { textOf } from "./MessageParts.tsx";
import { reportOtherVersion } from "./turn-actions.ts";

interface AnswerEditorProps {
  message: ThreadMessage;
  thread: Thread;
  autoFocus: boolean;
  onClose: () => void;
}

export function AnswerEditor({ message: { id, parts }, thread, autoFocus, onClose }: AnswerEditorProps) {
  const { drafts, toasts } = useApp();
  const draftId = editDraft(id);
  const original = textOf(parts);
  const save = async (text: string) => {
    const hidesLater = thread.state.get().messages.at(-1)?.id !== id;
    if (text !== original) {
      if (!(await thread.editAnswer({ message_id: id, text }))) return;
      if (hidesLater) reportOtherVersion(toasts, thread, id);
    }
    drafts.write(draftId, NO_DRAFT);
    onClose();
    focusMessageBox();
  };
  return (
    <article className={styles.message} aria-label="Assistant">
      <MessageEditor
        label="Edit answer"
        text={original}
        action="Save"
        draftId={draftId}
        autoFocus={autoFocus}
        onDone={(text) => void save(text)}
        onClose={onClose}
      />
    </article>
  );
}

import { useEffect, useRef, useState } from "react";
import { NO_DRAFT } from "../../core/drafts.ts";
import { useApp } from "../context.ts";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { isSubmitKey } from "../widgets/keyboard.ts";
import styles from "./MessageEditor.module.css";

interface Props {
  label: string;
  text: string;
  /** Whether the message has files, so that its text may be empty. */
  hasFiles?: boolean;
  action: string;
  /** The key of the draft that keeps the change until it is sent or canceled. */
  draftId: string;
  autoFocus: boolean;
  onDone: (text: string) => void;
  /** Closes the editor. With Escape, the draft is kept. */
  onClose: () => void;
}

/** A text area to edit a message in place. Enter confirms, Cancel discards the change, Escape only closes. */
export function MessageEditor(props: Props) {
  const { label, text, hasFiles = false, action, draftId, autoFocus, onDone, onClose } = props;
  const { drafts } = useApp();
  const [value, setValue] = useState(() => drafts.read(draftId).text || text);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    drafts.write(draftId, { text: value === text ? "" : value, files: [] });
  }, [drafts, draftId, value, text]);
  const cancel = () => {
    drafts.write(draftId, NO_DRAFT);
    onClose();
  };
  useEffect(() => {
    if (!autoFocus) return;
    area.current?.focus();
    area.current?.setSelectionRange(area.current.value.length, area.current.value.length);
  }, [autoFocus]);
  const ready = hasFiles || value.trim() !== "";
  const submit = () => ready && onDone(value);
  return (
    <form
      className={styles.editor}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={area}
        aria-label={label}
        value={value}
        rows={Math.min(12, value.split("\n").length + 1)}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && !event.nativeEvent.isComposing) onClose();
          if (isSubmitKey(event)) {
            event.preventDefault();
            submit();
          }
        }}
      />
      <FormButtons>
        <Button onClick={cancel}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={!ready}>
          {action}
        </Button>
      </FormButtons>
    </form>
  );
}

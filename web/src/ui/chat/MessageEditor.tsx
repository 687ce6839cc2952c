import { useEffect, useRef, useState } from "react";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import styles from "./MessageEditor.module.css";

interface Props {
  label: string;
  text: string;
  /** Whether the message has files, so that its text may be empty. */
  hasFiles?: boolean;
  action: string;
  onDone: (text: string) => void;
  onCancel: () => void;
}

/** A text area to edit a message in place. Enter confirms, Escape cancels. */
export function MessageEditor({ label, text, hasFiles = false, action, onDone, onCancel }: Props) {
  const [value, setValue] = useState(text);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(area.current.value.length, area.current.value.length);
  }, []);
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
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            submit();
          }
        }}
      />
      <FormButtons>
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={!ready}>
          {action}
        </Button>
      </FormButtons>
    </form>
  );
}

import { useEffect, useRef, useState } from "react";

interface Props {
  label: string;
  text: string;
  action: string;
  onDone: (text: string) => void;
  onCancel: () => void;
}

export function EditBox({ label, text, action, onDone, onCancel }: Props) {
  const [value, setValue] = useState(text);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const area = box.current;
    if (!area) return;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }, []);
  const done = () => value.trim() && onDone(value);
  return (
    <form
      className="edit-box"
      onSubmit={(event) => {
        event.preventDefault();
        done();
      }}
    >
      <textarea
        ref={box}
        aria-label={label}
        value={value}
        rows={Math.min(12, value.split("\n").length + 1)}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            done();
          }
        }}
      />
      <div className="row end">
        <button type="button" className="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="button primary" disabled={!value.trim()}>
          {action}
        </button>
      </div>
    </form>
  );
}

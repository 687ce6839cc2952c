// Where messages are written. What is typed is kept until it is stored elsewhere.

import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { FilePart } from "../core/wire.ts";
import { Attachments, useUploads } from "./Attachments.tsx";
import { useApp } from "./context.ts";
import { Icon } from "./icons.tsx";
import { Slash, type SlashCommand } from "./Slash.tsx";
import { IconButton } from "./widgets.tsx";

interface Props {
  /** Whose draft it is: a session's id, or "new". */
  draftOf: string;
  busy: boolean;
  stopping: boolean;
  onSend: (text: string, files: readonly FilePart[]) => Promise<boolean> | boolean;
  onStop: () => void;
  commands: readonly SlashCommand[];
  children?: React.ReactNode;
}

const MAX_HEIGHT = 320;

export function Composer({ draftOf, busy, stopping, onSend, onStop, commands, children }: Props) {
  const { drafts } = useApp();
  const [text, setText] = useState(() => drafts.read(draftOf).text);
  const uploads = useUploads(() => drafts.read(draftOf).files);
  const [over, setOver] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const { files } = uploads;

  useEffect(() => drafts.write(draftOf, { text, files }), [drafts, draftOf, text, files]);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) area.current?.focus();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useLayoutEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, MAX_HEIGHT)}px`;
  }, [text]);

  const ready = (text.trim() !== "" || files.length > 0) && !uploads.busy;
  const send = async () => {
    if (!ready) return;
    const [said, attached] = [text, files];
    setText("");
    uploads.clear();
    if (!(await onSend(said, attached))) {
      setText((now) => now || said); // nothing typed is lost
      uploads.restore(attached);
    }
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !event.defaultPrevented) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape" && busy) onStop();
  };
  const paste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length) {
      event.preventDefault();
      uploads.add(event.clipboardData.files);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    uploads.add(event.dataTransfer.files);
  };
  return (
    <form
      className={`composer${over ? " over" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Slash text={text} commands={commands} area={area} onRun={() => setText("")} />
      <Attachments uploads={uploads} />
      <textarea
        ref={area}
        aria-label="Message"
        placeholder={busy ? "Say more: it is queued" : "Ask anything"}
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={keys}
        onPaste={paste}
      />
      <div className="composer-bar">
        <IconButton name="Attach files" icon="clip" onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            uploads.add(event.target.files ?? []);
            event.target.value = "";
          }}
        />
        {children}
        <span className="grow" />
        {busy && (
          <button
            type="button"
            className="round stop"
            aria-label="Stop"
            title="Stop"
            onClick={onStop}
            disabled={stopping}
          >
            <Icon name="stop" />
          </button>
        )}
        {(!busy || ready) && (
          <button type="submit" className="round send" aria-label="Send" title="Send" disabled={!ready}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

// Tells screen readers that an answer began, what it says, and how it ended. Text that grows is not read out piecemeal.

import { useEffect, useRef, useState } from "react";
import type { ThreadMessage } from "../../core/thread.ts";
import text from "../widgets/text.module.css";
import { textOf } from "./MessageParts.tsx";

/** Longer answers are announced by their beginning; the rest is in the conversation. */
const MAX_LENGTH = 2000;

const ENDINGS = {
  streaming: "",
  complete: "",
  cancelled: "Answer stopped. ",
  failed: "Answer failed. ",
  interrupted: "Answer interrupted. ",
} as const;

export function AnswerAnnouncer({ messages }: { messages: readonly ThreadMessage[] }) {
  const last = messages.at(-1);
  const id = last?.role === "assistant" ? last.id : null;
  const status = last?.status ?? "complete";
  const approval = last?.approval?.name ?? null;
  const asking = last?.input?.server ?? null;
  const answer = useRef("");
  answer.current = last && status !== "streaming" ? textOf(last.parts) : "";
  const growing = useRef<string | null>(null);
  const [announcement, setAnnouncement] = useState("");
  useEffect(() => {
    if (id === null) return;
    if (approval !== null) setAnnouncement(`${approval} needs your approval.`);
    else if (asking !== null) setAnnouncement(`${asking} asks you something.`);
    else if (status === "streaming") setAnnouncement("Generating answer…");
    else if (growing.current === id) {
      const content = answer.current;
      const shown = content.length > MAX_LENGTH ? `${content.slice(0, MAX_LENGTH)}…` : content;
      setAnnouncement(`${ENDINGS[status]}${shown}`);
    }
    growing.current = status === "streaming" ? id : null;
  }, [id, status, approval, asking]);
  return (
    <p className={text.visuallyHidden} aria-live="polite" data-announcement>
      {announcement}
    </p>
  );
}

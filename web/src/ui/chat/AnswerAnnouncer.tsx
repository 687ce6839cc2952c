// Tells screen readers that an answer began, what it says, and how it ended. Text that grows is not read out piecemeal.

import { useEffect, useEffectEvent, useRef, useState } from "react";
import type { ThreadMessage } from "../../core/thread.ts";
import { toolLabel } from "../../core/tool-results.ts";
import { questionOf } from "../../core/user-questions.ts";
import { withoutMarkdown } from "../../core/without-markdown.ts";
import text from "../widgets/text.module.css";
import { textOf } from "./MessageParts.tsx";

/** Longer answers are announced by their beginning; the rest is in the conversation. */
const MAX_LENGTH = 2000;

/** After that the region is empty: whoever reads on finds the answer once. */
const SHOWN_MS = 10_000;

const ENDINGS = {
  streaming: "",
  complete: "",
  cancelled: "Answer stopped.",
  failed: "Answer failed.",
  interrupted: "Answer interrupted.",
} as const;

/** What an answer waits for. */
function openQuestion({ approval, input }: ThreadMessage): string | null {
  const question = approval && questionOf(approval);
  if (question) return `The model asks: ${question.question}`;
  if (approval) return `${toolLabel(approval.name)} needs your approval.`;
  return input && `${input.server} asks you something.`;
}

/** The answer in plain words; of an answer that was continued, what is new. */
function spokenText(answer: string, before: string): string {
  const fresh = before && answer.startsWith(before) ? answer.slice(before.length) : answer;
  const words = withoutMarkdown(fresh.slice(0, 2 * MAX_LENGTH));
  return words.length > MAX_LENGTH || fresh.length > 2 * MAX_LENGTH ? `${words.slice(0, MAX_LENGTH)}…` : words;
}

export function AnswerAnnouncer({ messages }: { messages: readonly ThreadMessage[] }) {
  const last = messages.at(-1);
  const id = last?.role === "assistant" ? last.id : null;
  const status = last?.status ?? "complete";
  const asking = last ? openQuestion(last) : null;
  const parent = last?.parent_id ?? null;
  const readAnswer = useEffectEvent(() => textOf(last?.parts ?? []));
  const growing = useRef<string | null>(null);
  /** The text of the last answer that had ended. */
  const settled = useRef({ parent, text: "" });
  const announced = useRef<string | null>(null);
  const [announcement, setAnnouncement] = useState("");
  useEffect(() => {
    if (id !== announced.current) setAnnouncement(""); // another answer is shown, as after Undo
    announced.current = id;
    if (id === null) return;
    if (asking !== null) setAnnouncement(asking);
    else if (status === "streaming") setAnnouncement("Generating answer…");
    else if (growing.current === id) {
      const before = settled.current.parent === parent ? settled.current.text : "";
      setAnnouncement(ENDINGS[status] || spokenText(readAnswer(), before)); // who stops an answer has read it
    }
    growing.current = status === "streaming" ? id : null;
    if (status !== "streaming") settled.current = { parent, text: readAnswer() };
  }, [id, parent, status, asking]);
  useEffect(() => {
    if (!announcement || status === "streaming") return;
    const timer = setTimeout(() => setAnnouncement(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [announcement, status]);
  return (
    <p className={text.visuallyHidden} aria-live="polite" data-announcement>
      {announcement}
    </p>
  );
}

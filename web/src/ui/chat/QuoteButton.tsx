// Offers to quote the text that is selected in a conversation.

import { useEffect, useEffectEvent, useState } from "react";
import { quoted } from "../../core/quote.ts";
import { useApp, useStore } from "../context.ts";
import { singleKeysOn } from "../single-key-shortcuts.ts";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import popover from "../widgets/popover.module.css";
import { findConversation } from "./conversation.ts";
import { focusMessageBox } from "./focus.ts";
import styles from "./QuoteButton.module.css";

/** The selection if all of it is in the messages of the conversation. */
function selectedRange(): Range | null {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || !selection.toString().trim()) return null;
  const range = selection.getRangeAt(0);
  const isInMessage = (node: Node) => {
    const element = node instanceof Element ? node : node.parentElement;
    return findConversation()?.contains(element?.closest("article") ?? null) === true;
  };
  return isInMessage(range.startContainer) && isInMessage(range.endContainer) ? range : null;
}

const GAP = 8;
const WIDTH = 100;

export default function QuoteButton({ sid }: { sid: string }) {
  const { drafts } = useApp();
  const byKey = useStore(singleKeysOn);
  const [place, setPlace] = useState<{ left: number; top: number } | null>(null);
  const quote = () => {
    const text = getSelection()?.toString();
    if (!text) return;
    getSelection()?.removeAllRanges();
    drafts.append(sid, quoted(text));
    focusMessageBox();
  };
  useEffect(() => {
    let frame = 0;
    const update = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        const area = findConversation()?.getBoundingClientRect();
        const end = [...(selectedRange()?.getClientRects() ?? [])].at(-1);
        if (!area || !end || end.bottom < area.top || end.bottom > area.bottom) return setPlace(null);
        const top = Math.min(end.bottom + GAP, area.bottom - 2.5 * 16);
        setPlace({ left: Math.max(area.left + GAP, Math.min(end.right, area.right) - WIDTH), top });
      });
    };
    document.addEventListener("selectionchange", update);
    addEventListener("scroll", update, true);
    return () => {
      cancelAnimationFrame(frame);
      document.removeEventListener("selectionchange", update);
      removeEventListener("scroll", update, true);
    };
  }, []);
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    if (!byKey || event.key !== "r" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
    if (!selectedRange()) return;
    event.preventDefault();
    quote();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKeyDown(event);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
  if (!place) return null;
  return (
    <button
      type="button"
      className={classNames(popover.floating, styles.button)}
      style={place}
      title={byKey ? "Quote (R)" : "Quote"}
      onPointerDown={(event) => event.preventDefault()} // the text stays selected
      onClick={quote}
    >
      <Icon name="quote" />
      Quote
    </button>
  );
}

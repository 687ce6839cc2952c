// Moving between the messages of the shown chat by keyboard.

import { findConversation } from "./conversation.ts";

/** Moves the focus to the next or the previous message. */
export function moveToMessage(step: 1 | -1): void {
  const area = findConversation();
  if (!area) return;
  const messages = [...area.querySelectorAll<HTMLElement>("article[data-id]")];
  const focused = document.activeElement?.closest<HTMLElement>("article[data-id]");
  const { top } = area.getBoundingClientRect();
  const isBelow = (message: HTMLElement) => message.getBoundingClientRect().top >= top - 1;
  const at = focused
    ? messages.indexOf(focused) + step
    : step > 0
      ? messages.findIndex(isBelow)
      : messages.findLastIndex((message) => !isBelow(message));
  const next = messages[at];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "start" });
}

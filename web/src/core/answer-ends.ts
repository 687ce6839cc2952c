// How an answer ended.

import type { Message } from "./types.ts";

/** Whether a person wrote the text of an answer. */
export const isEdited = ({ reason }: Message): boolean => reason === "edited";

/** Whether an answer ended as it should. */
export const isWhole = (message: Message): boolean =>
  message.status === "complete" && (message.reason === null || isEdited(message));

/** Whether a person stopped the answer and went on without it. */
export const wasLeftStopped = ({ status }: Message, last: boolean): boolean => status === "cancelled" && !last;

import type { KeyboardEvent } from "react";

/** Whether the key submits a text area: Enter, which on a touch keyboard starts a new line, or Ctrl/Cmd-Enter. */
export function isSubmitKey({ key, shiftKey, ctrlKey, metaKey, nativeEvent }: KeyboardEvent): boolean {
  if (key !== "Enter" || shiftKey || nativeEvent.isComposing) return false;
  return ctrlKey || metaKey || !matchMedia("(hover: none) and (pointer: coarse)").matches;
}

/** What else than waiting in the queue the key does with a message while an answer is active. */
export function sendMode(event: KeyboardEvent, canSteer: boolean): "steer" | "interrupt" | null {
  const { key, shiftKey, ctrlKey, metaKey, altKey, nativeEvent } = event;
  if (key !== "Enter" || nativeEvent.isComposing) return null;
  if (shiftKey) return (ctrlKey || metaKey) && !altKey ? "interrupt" : null;
  return altKey && !ctrlKey && !metaKey && canSteer ? "steer" : null;
}

/** Whether the key is pressed without a modifier, and not for an input method. */
export function isPlainKey({ shiftKey, ctrlKey, metaKey, altKey, nativeEvent }: KeyboardEvent): boolean {
  return !(shiftKey || ctrlKey || metaKey || altKey || nativeEvent.isComposing);
}

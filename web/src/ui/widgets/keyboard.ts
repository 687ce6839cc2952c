import type { KeyboardEvent } from "react";

/** Whether the key submits a text area: Enter, which on a touch keyboard starts a new line, or Ctrl/Cmd-Enter. */
export function isSubmitKey({ key, shiftKey, ctrlKey, metaKey, nativeEvent }: KeyboardEvent): boolean {
  if (key !== "Enter" || shiftKey || nativeEvent.isComposing) return false;
  return ctrlKey || metaKey || !matchMedia("(hover: none) and (pointer: coarse)").matches;
}

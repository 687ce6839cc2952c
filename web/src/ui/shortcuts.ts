// The keyboard shortcuts that work everywhere on the page. The others are handled where they work: F6 in
// WorkspaceButton; R in QuoteButton; Enter, Shift+Enter, Alt+Enter, Ctrl+Shift+Enter and Esc in Composer; / in SlashCommands. `ShortcutsDialog` lists all.

import { useEffect, useEffectEvent } from "react";
import { findConversation } from "./chat/conversation.ts";
import { FIND_FIELD } from "./chat/find-state.ts";
import { moveToMessage } from "./chat/message-navigation.ts";
import { singleKeysOn } from "./single-key-shortcuts.ts";

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
/** The modifier key of the shortcuts, as it is shown. */
export const MODIFIER = isMac ? "⌘" : "Ctrl";
/** The keys that add a message to the active answer, and that stop the answer for it (`sendMode` of `keyboard`). */
export const STEER_KEYS: readonly string[] = [isMac ? "⌥" : "Alt", "Enter"];
export const INTERRUPT_KEYS: readonly string[] = [MODIFIER, "Shift", "Enter"];

interface Actions {
  readonly onPalette: () => void;
  readonly onShortcuts: () => void;
  readonly onFind: () => void;
  readonly onPrint: () => void;
  readonly onNewChat: () => void;
  readonly onSidebar: () => void;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));

export function useShortcuts(actions: Actions): void {
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    const act = actionOf(event, actions);
    if (!act) return;
    event.preventDefault();
    act();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKeyDown(event);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}

function actionOf(event: KeyboardEvent, actions: Actions): (() => void) | null {
  const key = event.key.toLowerCase();
  const modified = event.ctrlKey || event.metaKey;
  if (modified && !event.shiftKey && key === "k") return actions.onPalette;
  if (document.querySelector("dialog[open]")) return null;
  if (modified && !event.shiftKey && key === "f") return canFind(event.target) ? actions.onFind : null;
  if (modified && !event.shiftKey && key === "p" && isChat()) return actions.onPrint;
  if (modified && event.shiftKey && key === "o") return actions.onNewChat;
  if (modified && event.shiftKey && key === "s") return actions.onSidebar;
  if (modified || event.altKey || isTyping(event.target) || !singleKeysOn.get()) return null;
  if (key === "j") return () => moveToMessage(1);
  if (key === "k") return () => moveToMessage(-1);
  return key === "?" ? actions.onShortcuts : null;
}

/** In a chat, unless its own field has the focus: then the browser's search opens. */
const canFind = (target: EventTarget | null): boolean =>
  isChat() && !(target instanceof HTMLElement && target.id === FIND_FIELD);

const isChat = (): boolean => findConversation() !== null;

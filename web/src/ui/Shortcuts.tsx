// The keyboard shortcuts of the whole page, and the list of them.

import { useEffect, useRef } from "react";
import styles from "./Shortcuts.module.css";
import { Button, FormButtons } from "./widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "./widgets/Dialog.tsx";

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
/** The key that shortcuts are pressed with. */
export const MODIFIER = isMac ? "⌘" : "Ctrl";

const SHORTCUTS: readonly (readonly [name: string, ...keys: string[]])[] = [
  ["Search chats and commands", MODIFIER, "K"],
  ["New chat", MODIFIER, "Shift", "O"],
  ["Show or hide the sidebar", MODIFIER, "Shift", "S"],
  ["Send message", "Enter"],
  ["New line", "Shift", "Enter"],
  ["Stop generating", "Esc"],
  ["Commands in the message box", "/"],
  ["Show this list", "?"],
];

interface Actions {
  readonly onPalette: () => void;
  readonly onShortcuts: () => void;
  readonly onNewChat: () => void;
  readonly onSidebar: () => void;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));

export function useShortcuts(actions: Actions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const act = actionOf(event, latest.current);
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function actionOf(event: KeyboardEvent, actions: Actions): (() => void) | null {
  const key = event.key.toLowerCase();
  const modified = event.ctrlKey || event.metaKey;
  if (modified && !event.shiftKey && key === "k") return actions.onPalette;
  if (document.querySelector("dialog[open]")) return null;
  if (modified && event.shiftKey && key === "o") return actions.onNewChat;
  if (modified && event.shiftKey && key === "s") return actions.onSidebar;
  return key === "?" && !modified && !event.altKey && !isTyping(event.target) ? actions.onShortcuts : null;
}

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog name="Keyboard shortcuts" onClose={onClose}>
      <div className={dialogBodyClass}>
        <h2>Keyboard shortcuts</h2>
        <dl className={styles.shortcuts}>
          {SHORTCUTS.map(([name, ...keys]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dd>
            </div>
          ))}
        </dl>
        <FormButtons>
          <Button onClick={onClose}>Close</Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}

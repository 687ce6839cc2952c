// Lists the keyboard shortcuts.

import { useStore } from "./context.ts";
import styles from "./ShortcutsDialog.module.css";
import { INTERRUPT_KEYS, MODIFIER, STEER_KEYS } from "./shortcuts.ts";
import { singleKeysOn } from "./single-key-shortcuts.ts";
import { Button, FormButtons } from "./widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "./widgets/Dialog.tsx";

const SHORTCUTS: readonly (readonly [name: string, ...keys: string[]])[] = [
  ["Search chats and commands", MODIFIER, "K"],
  ["New chat", MODIFIER, "Shift", "O"],
  ["Show or hide the sidebar", MODIFIER, "Shift", "S"],
  ["Find in chat (twice: in the page)", MODIFIER, "F"],
  ["Print the whole chat", MODIFIER, "P"],
  ["Next message", "J"],
  ["Previous message", "K"],
  ["Quote the selected text", "R"],
  ["Show files, or move between them and the chat", "F6"],
  ["Send message", "Enter"],
  ["New line", "Shift", "Enter"],
  ["Add to the active answer", ...STEER_KEYS],
  ["Stop the answer and send", ...INTERRUPT_KEYS],
  ["Edit your last message (in an empty message box)", "↑"],
  ["Stop generating", "Esc"],
  ["Commands in the message box", "/"],
  ["Show this list", "?"],
];

const SINGLE_KEYS: readonly string[] = ["J", "K", "R", "?"];

export default function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const withSingleKeys = useStore(singleKeysOn);
  const shown = SHORTCUTS.filter(([, ...keys]) => withSingleKeys || !SINGLE_KEYS.includes(keys.join()));
  return (
    <Dialog name="Keyboard shortcuts" onClose={onClose}>
      <div className={dialogBodyClass}>
        <h2>Keyboard shortcuts</h2>
        <dl className={styles.shortcuts}>
          {shown.map(([name, ...keys]) => (
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

// Ctrl/Cmd-K: searches commands and chats.

import { useMemo } from "react";
import styles from "./CommandPalette.module.css";
import { useApp, useStore } from "./context.ts";
import { navigate } from "./router.tsx";
import { setTheme } from "./theme.ts";
import { Dialog } from "./widgets/Dialog.tsx";
import { type Choice, Picker } from "./widgets/Picker.tsx";

interface Command extends Choice {
  readonly run: () => void;
}

export function CommandPalette({ onClose }: { onClose: () => void }) {
  const app = useApp();
  const { items } = useStore(app.sessions.state);
  const thread = useStore(app.thread);
  const commands = useMemo(() => {
    const goTo = (name: string, path: string): Command => ({
      id: path,
      name,
      group: "Go to",
      run: () => navigate(path),
    });
    const action = (name: string, run: () => unknown): Command => ({
      id: name,
      name,
      group: "Actions",
      run: () => void run(),
    });
    const chatActions = thread
      ? [
          action("Stop generating", () => thread.stop()),
          action("Undo last turn", () => thread.undo()),
          action("Redo", () => thread.redo()),
        ]
      : [];
    return [
      goTo("New chat", "/"),
      goTo("Compare models", "/compare"),
      goTo("Activity", "/activity"),
      goTo("Settings", "/settings"),
      ...chatActions,
      action("Light theme", () => setTheme("light")),
      action("Dark theme", () => setTheme("dark")),
      action("System theme", () => setTheme("system")),
      ...items.map(
        (session): Command => ({
          id: session.id,
          name: session.title || "Untitled chat",
          note: session.tags.map((tag) => `#${tag}`).join(" ") || undefined,
          group: "Chats",
          run: () => navigate(`/c/${session.id}`),
        }),
      ),
    ];
  }, [items, thread]);
  const choose = (command: Command) => {
    onClose();
    command.run();
  };
  return (
    <Dialog name="Command palette" className={styles.palette} onClose={onClose}>
      <Picker label="Search chats and commands" choices={commands} onChoose={choose} autoFocus />
    </Dialog>
  );
}

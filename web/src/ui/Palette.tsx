// Ctrl/Cmd-K: go anywhere, do anything, find a chat.

import { useMemo } from "react";
import { useApp, useStore } from "./context.ts";
import { type Choice, Picker } from "./Picker.tsx";
import { navigate } from "./router.tsx";
import { setTheme } from "./theme.ts";
import { Dialog } from "./widgets.tsx";

interface Command extends Choice {
  readonly run: () => void;
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const app = useApp();
  const { items } = useStore(app.sessions.state);
  const thread = useStore(app.thread);
  const commands = useMemo(() => {
    const go = (name: string, path: string): Command => ({ id: path, name, group: "Go to", run: () => navigate(path) });
    const act = (name: string, run: () => unknown): Command => ({ id: name, name, group: "Do", run: () => void run() });
    return [
      go("New chat", "/"),
      go("Compare models", "/compare"),
      go("Activity", "/activity"),
      go("Settings", "/settings"),
      ...(thread
        ? [
            act("Stop the answer", () => thread.stop()),
            act("Undo the last turn", () => thread.undo()),
            act("Redo", () => thread.redo()),
          ]
        : []),
      act("Light theme", () => setTheme("light")),
      act("Dark theme", () => setTheme("dark")),
      act("Theme of the system", () => setTheme("system")),
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
  const choose = (choice: Choice) => {
    onClose();
    (choice as Command).run();
  };
  return (
    <Dialog name="Commands" className="palette" onClose={onClose}>
      <Picker label="Command" placeholder="Go to, do, find …" choices={commands} onChoose={choose} autoFocus />
    </Dialog>
  );
}

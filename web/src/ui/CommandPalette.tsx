// Ctrl/Cmd-K: searches commands and chats, also those that are not loaded.

import { useEffect, useMemo, useRef, useState } from "react";
import type { App } from "../core/app.ts";
import type { Session } from "../core/types.ts";
import styles from "./CommandPalette.module.css";
import { undoTurn } from "./chat/turn-actions.ts";
import { useApp, useStore } from "./context.ts";
import { openNewChat } from "./new-chat.ts";
import { chatAddress, navigate } from "./router.tsx";
import { renameChat, toggleArchived } from "./sidebar/session-actions.ts";
import { toggleSidebar } from "./sidebar/sidebar-state.ts";
import { setTheme } from "./theme.ts";
import { Dialog } from "./widgets/Dialog.tsx";
import { type Choice, Picker } from "./widgets/Picker.tsx";

interface Command extends Choice {
  readonly run: () => void;
}

const SEARCH_DELAY_MS = 150;
const MAX_FOUND = 20;

/** Searches all chats on the server, a moment after the last key. */
function useChatSearch({ api }: App): [readonly Session[], (query: string) => void] {
  const [found, setFound] = useState<readonly Session[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef("");
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (query: string) => {
    latest.current = query;
    setFound([]);
    clearTimeout(timer.current);
    if (!query.trim()) return;
    timer.current = setTimeout(async () => {
      const page = await api.sessions({ query, limit: MAX_FOUND }).catch(() => null);
      if (page && latest.current === query) setFound(page.items);
    }, SEARCH_DELAY_MS);
  };
  return [found, search];
}

function sessionActions(app: App, session: Session): Command[] {
  const actions = [
    ["Rename chat", () => renameChat(app, session)],
    [session.archived ? "Unarchive chat" : "Archive chat", () => toggleArchived(app, session)],
  ] as const;
  return actions.map(([name, run]) => ({ id: name, name, group: "Actions", run: () => void run() }));
}

export function CommandPalette({ onClose, onShortcuts }: { onClose: () => void; onShortcuts: () => void }) {
  const app = useApp();
  const { items } = useStore(app.sessions.state);
  const thread = useStore(app.thread);
  const [found, search] = useChatSearch(app);
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
    const openChat = (session: Session): Command => ({
      id: session.id,
      name: session.title || "Untitled chat",
      note: session.tags.map((tag) => `#${tag}`).join(" ") || undefined,
      group: "Chats",
      run: () => navigate(chatAddress(session)),
    });
    const session = thread?.state.get().session; // as it is when the palette opens
    const chatActions = thread
      ? [
          ...(session?.active_run ? [action("Stop generating", () => thread.stop())] : []),
          ...(session?.head ? [action("Undo last turn", () => undoTurn(app, thread))] : []),
          ...(session?.can_redo ? [action("Redo", () => thread.redo())] : []),
          ...(session ? sessionActions(app, session) : []),
        ]
      : [];
    return [
      { ...goTo("New chat", "/"), run: () => openNewChat(app) },
      goTo("Compare models", "/compare"),
      goTo("Activity", "/activity"),
      goTo("Settings", "/settings"),
      ...chatActions,
      action("Light theme", () => setTheme("light")),
      action("Dark theme", () => setTheme("dark")),
      action("System theme", () => setTheme("system")),
      action("Show or hide the sidebar", toggleSidebar),
      action("Keyboard shortcuts", onShortcuts),
      ...found.map((session) => ({ ...openChat(session), found: true })),
      ...items.filter((session) => !found.some(({ id }) => id === session.id)).map(openChat),
    ];
  }, [app, items, found, thread, onShortcuts]);
  const choose = (command: Command) => {
    onClose();
    command.run();
  };
  return (
    <Dialog name="Command palette" className={styles.palette} onClose={onClose}>
      <Picker label="Search chats and commands" choices={commands} onChoose={choose} onQuery={search} autoFocus />
    </Dialog>
  );
}

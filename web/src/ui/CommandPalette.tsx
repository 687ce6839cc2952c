// Ctrl/Cmd-K: searches commands and chats, also those that are not loaded.

import { useEffect, useMemo, useRef, useState } from "react";
import type { App } from "../core/app.ts";
import type { Session } from "../core/types.ts";
import styles from "./CommandPalette.module.css";
import { openFind } from "./chat/find-state.ts";
import { printChat } from "./chat/print-chat.ts";
import { redoTurn, undoTurn } from "./chat/turn-actions.ts";
import { useApp, useStore } from "./context.ts";
import { chatSettingsOpen } from "./dialogs.ts";
import { openNewChat } from "./open-new-chat.ts";
import { chatAddress, navigate } from "./router.tsx";
import { SECTION_NAMES } from "./settings/section-names.ts";
import { startSelecting } from "./sidebar/selection-state.ts";
import { generateTitle, renameChat, toggleArchived } from "./sidebar/session-actions.ts";
import { toggleSidebar } from "./sidebar/sidebar-state.ts";
import { setTheme } from "./theme.ts";
import { Dialog } from "./widgets/Dialog.tsx";
import { Picker, type PickerItem } from "./widgets/Picker.tsx";
import { showWorkspace, workspaceOpen } from "./workspace/workspace-state.ts";

interface Command extends PickerItem {
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
    ["Find in chat", openFind],
    ["Chat settings", () => chatSettingsOpen.set(true)],
    ["Show or hide files", () => showWorkspace(!workspaceOpen.get())],
    ["Print chat", () => printChat(app, session.id)],
    ["Rename chat", () => renameChat(app, session)],
    ["Generate title", () => generateTitle(app, session)],
    [session.pinned ? "Unpin chat" : "Pin chat", () => app.sessions.patch(session.id, { pinned: !session.pinned })],
    [session.archived ? "Unarchive chat" : "Archive chat", () => toggleArchived(app, session)],
  ] as const;
  return actions.map(([name, run]) => ({ id: name, name, group: "Actions", run: () => void run() }));
}

export default function CommandPalette({ onClose, onShortcuts }: { onClose: () => void; onShortcuts: () => void }) {
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
          ...(session?.head ? [action("Undo last message", () => undoTurn(app, thread))] : []),
          ...(session?.can_redo ? [action("Redo", () => redoTurn(thread))] : []),
          ...(session ? sessionActions(app, session) : []),
        ]
      : [];
    return [
      { ...goTo("New chat", "/"), run: () => openNewChat(app) },
      goTo("Projects", "/projects"),
      goTo("Compare models", "/compare"),
      goTo("Activity", "/activity"),
      goTo("Settings", "/settings"),
      ...Object.entries(SECTION_NAMES).map(([id, name]) => goTo(`Settings: ${name}`, `/settings#${id}`)),
      { ...goTo("Archived chats", "archived"), run: () => app.sessions.showArchived(true) },
      ...chatActions,
      action("Select chats", () => startSelecting(null)),
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

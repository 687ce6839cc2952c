// Ctrl/Cmd-K: searches commands and chats, also those that are not loaded.

import { useEffect, useMemo, useRef, useState } from "react";
import type { App } from "../core/app.ts";
import type { Thread } from "../core/thread.ts";
import type { Session } from "../core/types.ts";
import styles from "./CommandPalette.module.css";
import { openFind } from "./chat/find-state.ts";
import { printChat } from "./chat/print-chat.ts";
import { compactContext, redoTurn, regenerate, undoTurn } from "./chat/turn-actions.ts";
import { useApp, useStore } from "./context.ts";
import { chatSettingsOpen } from "./dialogs.ts";
import { openNewChat } from "./open-new-chat.ts";
import { chatAddress, navigate } from "./router.tsx";
import { SECTION_NAMES } from "./settings/section-names.ts";
import { startSelecting } from "./sidebar/selection-state.ts";
import { deleteChat, exportActions, generateTitle, renameChat, toggleArchived } from "./sidebar/session-actions.ts";
import { ShareDialog } from "./sidebar/share-dialog.ts";
import { toggleSidebar } from "./sidebar/sidebar-state.ts";
import { setTheme } from "./theme.ts";
import { Dialog } from "./widgets/Dialog.tsx";
import { lazyOverlay } from "./widgets/lazy-overlay.tsx";
import { Picker, type PickerItem } from "./widgets/Picker.tsx";
import { showWorkspace, workspaceOpen } from "./workspace/workspace-state.ts";

const ProjectDialog = lazyOverlay(() => import("./sidebar/ProjectDialog.tsx"));

interface Command extends PickerItem {
  readonly run: () => void;
  /** Whether it opens a dialog in place of the palette. */
  readonly opens?: boolean;
}

const SEARCH_DELAY_MS = 150;
const MAX_FOUND = 20;
const MAX_RECENT = 5;

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

type Overlay = "share" | "project";

function sessionActions(app: App, thread: Thread, session: Session, show: (overlay: Overlay) => void): Command[] {
  const last = thread.state.get().messages.at(-1);
  const actions = [
    ...(session.active_run ? [["Stop generating", () => thread.stop()] as const] : []),
    ...(last ? [["Regenerate last answer", () => regenerate(app, thread, last.id)] as const] : []),
    ...(session.head ? [["Undo last message", () => undoTurn(app, thread)] as const] : []),
    ...(session.can_redo ? [["Redo", () => redoTurn(thread)] as const] : []),
    ...(app.isProgram(session.agent) ? [] : [["Summarize older messages", () => compactContext(app, thread)] as const]),
    ["Find in chat", openFind],
    ["Chat settings", () => chatSettingsOpen.set(true)],
    ["Show or hide files", () => showWorkspace(!workspaceOpen.get())],
    ["Share chat", () => show("share"), true],
    ...exportActions(session.id),
    ["Print chat", () => printChat(app, session.id)],
    ["Move to project", () => show("project"), true],
    ["Rename chat", () => renameChat(app, session)],
    ["Generate title", () => generateTitle(app, session)],
    [session.pinned ? "Unpin chat" : "Pin chat", () => app.sessions.patch(session.id, { pinned: !session.pinned })],
    [session.archived ? "Unarchive chat" : "Archive chat", () => toggleArchived(app, session)],
    ["Delete chat", () => deleteChat(app, session)],
  ] as const;
  return actions.map(([name, run, opens = false]) => ({
    id: name,
    name,
    group: "Actions",
    opens,
    run: () => void run(),
  }));
}

export default function CommandPalette({ onClose, onShortcuts }: { onClose: () => void; onShortcuts: () => void }) {
  const app = useApp();
  const { items } = useStore(app.sessions.state);
  const thread = useStore(app.thread);
  const [found, search] = useChatSearch(app);
  const [overlay, setOverlay] = useState<Overlay | null>(null);
  const shown = thread?.state.get().session; // as it is when the palette opens
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
    const chatActions = thread && shown ? sessionActions(app, thread, shown, setOverlay) : [];
    const recent = items.filter(({ id }) => id !== shown?.id).slice(0, MAX_RECENT);
    return [
      ...recent.map((session) => ({
        ...openChat(session),
        id: `recent:${session.id}`,
        group: "Recent chats",
        when: "idle" as const,
      })),
      { ...goTo("New chat", "/"), run: () => openNewChat(app) },
      goTo("Projects", "/projects"),
      goTo("Compare models", "/compare"),
      goTo("Activity", "/activity"),
      goTo("Settings", "/settings"),
      ...Object.entries(SECTION_NAMES).map(([id, name]) => ({
        ...goTo(`Settings: ${name}`, `/settings#${id}`),
        when: "searching" as const,
      })),
      { ...goTo("Archived chats", "archived"), run: () => app.sessions.showArchived(true) },
      ...chatActions,
      action("Select chats", () => startSelecting(null)),
      action("Light theme", () => setTheme("light")),
      action("Dark theme", () => setTheme("dark")),
      action("System theme", () => setTheme("system")),
      action("Show or hide the sidebar", toggleSidebar),
      action("Keyboard shortcuts", onShortcuts),
      ...found.map((session) => ({ ...openChat(session), found: true })),
      ...items
        .filter((session) => !found.some(({ id }) => id === session.id))
        .map((session) => ({ ...openChat(session), when: "searching" as const })),
    ];
  }, [app, items, found, thread, shown, onShortcuts]);
  const choose = (command: Command) => {
    if (!command.opens) onClose();
    command.run();
  };
  if (shown && overlay === "share") return <ShareDialog sid={shown.id} onClose={onClose} />;
  if (shown && overlay === "project") return <ProjectDialog chats={[shown]} onClose={onClose} />;
  return (
    <Dialog name="Command palette" className={styles.palette} onClose={onClose}>
      <Picker label="Search chats and commands" choices={commands} onChoose={choose} onQuery={search} autoFocus />
    </Dialog>
  );
}

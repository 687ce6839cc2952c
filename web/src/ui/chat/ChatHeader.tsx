import { firstWords } from "../../core/session-list.ts";
import type { Thread } from "../../core/thread.ts";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { waitText } from "../format.ts";
import { openNewChat } from "../open-new-chat.ts";
import { SessionMenu } from "../sidebar/SessionMenu.tsx";
import { SourceBadge } from "../sidebar/SourceBadge.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { LazyPart } from "../widgets/LazyPart.tsx";
import { ScreenHeader } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";
import { WorkspaceButton } from "../workspace/WorkspaceButton.tsx";
import { ChatSettingsButton, MemoryOffBadge } from "./ChatSettingsButton.tsx";
import { openFind } from "./find-state.ts";
import { PersonaLabel } from "./lazy-persona.ts";
import { ProjectBadge } from "./ProjectBadge.tsx";
import { redoTurn, undoTurn } from "./turn-actions.ts";

export function ChatHeader({ thread, session }: { thread: Thread; session: Session | null }) {
  const app = useApp();
  const { items, results } = useStore(app.sessions.state); // a title of its first words may come later
  const sent = useStore(app.outbox.state).find(({ sid }) => sid === thread.sid);
  const known = session
    ? app.sessions.named(session)
    : [...items, ...(results ?? [])].find(({ id }) => id === thread.sid);
  const title = known?.title || (session ? "Untitled chat" : sent && firstWords(sent.text)) || "Chat";
  const waiting = session?.active_run_status === "waiting";
  return (
    <ScreenHeader title={title} note={waiting ? waitText(session.waits_for) : undefined}>
      {session && (
        <>
          <ProjectBadge project={session.project} />
          {session.persona && (
            <LazyPart>
              <PersonaLabel chosen={session.persona} />
            </LazyPart>
          )}
          <SourceBadge session={session} />
          <MemoryOffBadge chat={session} />
          <IconButton
            name="Undo last message"
            icon="undo"
            disabled={session.head === null}
            onClick={() => void undoTurn(app, thread)}
          />
          <IconButton
            name="Redo"
            icon="redo"
            className={session.can_redo ? undefined : text.onlyWide}
            disabled={!session.can_redo}
            onClick={() => void redoTurn(thread)}
          />
          <ChatSettingsButton
            chat={session}
            onSave={(fields) => {
              const { model } = fields;
              if (model !== undefined && model !== session.model) app.newChat.rememberModel(model);
              return thread.tryPatch(fields);
            }}
          />
          <IconButton name="Find in chat" icon="search" className={text.onlyWide} onClick={openFind} />
          <WorkspaceButton />
          <IconButton name="New chat" icon="plus" className={text.onlyNarrow} onClick={() => openNewChat(app)} />
          <SessionMenu
            session={app.sessions.named(session)}
            more={[{ name: "Find in chat", icon: "search", run: openFind }]}
          />
        </>
      )}
    </ScreenHeader>
  );
}

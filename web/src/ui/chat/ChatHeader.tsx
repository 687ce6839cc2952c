import type { Thread } from "../../core/thread.ts";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { SessionMenu } from "../sidebar/SessionMenu.tsx";
import { SourceBadge } from "../sidebar/SourceBadge.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { ScreenHeader } from "../widgets/Screen.tsx";
import { undoTurn } from "./turn-actions.ts";

export function ChatHeader({ thread, session }: { thread: Thread; session: Session | null }) {
  const app = useApp();
  useStore(app.sessions.state); // a title of its first words may come later
  const title = session && app.sessions.named(session).title;
  const waiting = session?.active_run_status === "waiting";
  return (
    <ScreenHeader title={title || "Untitled chat"} note={waiting ? "Needs approval" : undefined}>
      {session && (
        <>
          <SourceBadge session={session} />
          <IconButton
            name="Undo"
            icon="undo"
            disabled={session.head === null}
            onClick={() => void undoTurn(app, thread)}
          />
          <IconButton name="Redo" icon="redo" disabled={!session.can_redo} onClick={() => void thread.redo()} />
          <SessionMenu session={app.sessions.named(session)} />
        </>
      )}
    </ScreenHeader>
  );
}

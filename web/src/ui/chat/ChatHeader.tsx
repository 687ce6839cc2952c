import type { Thread } from "../../core/thread.ts";
import type { Session } from "../../core/types.ts";
import { SessionMenu } from "../sidebar/SessionMenu.tsx";
import { SourceBadge } from "../sidebar/SourceBadge.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { ScreenHeader } from "../widgets/Screen.tsx";

export function ChatHeader({ thread, session }: { thread: Thread; session: Session | null }) {
  return (
    <ScreenHeader title={session?.title || "Chat"}>
      {session && (
        <>
          <SourceBadge session={session} />
          <IconButton name="Undo" icon="undo" disabled={session.head === null} onClick={() => void thread.undo()} />
          <IconButton name="Redo" icon="redo" disabled={!session.can_redo} onClick={() => void thread.redo()} />
          <SessionMenu session={session} />
        </>
      )}
    </ScreenHeader>
  );
}

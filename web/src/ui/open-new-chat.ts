import type { App } from "../core/app.ts";
import { focusMessageBox } from "./chat/focus.ts";
import { navigate } from "./router.tsx";

/** Opens an empty chat, and the list in which it will be. */
export function openNewChat({ sessions, newChat }: App, project: string | null = null): void {
  if (sessions.state.get().archived) sessions.showArchived(false);
  if ((newChat.choices.get().project ?? null) !== project) newChat.choose({ project });
  navigate("/");
  focusMessageBox(); // it may be open already
}

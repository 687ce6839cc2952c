import type { App } from "../core/app.ts";
import { navigate } from "./router.tsx";

/** Opens an empty chat, and the list in which it will be. */
export function openNewChat({ sessions }: App): void {
  if (sessions.state.get().archived) sessions.showArchived(false);
  navigate("/");
}

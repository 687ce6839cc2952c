// Shows and hides the files of the chat. F6 moves between them and the message box.

import { useEffect } from "react";
import { focusMessageBox } from "../chat/focus.ts";
import { useStore } from "../context.ts";
import { iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import styles from "./WorkspaceButton.module.css";
import { showWorkspace, wantsFocus, workspaceOpen } from "./workspace-state.ts";

export const PANEL_ID = "files";

export function WorkspaceButton() {
  const open = useStore(workspaceOpen);
  useEffect(() => {
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <button
      type="button"
      className={classNames(iconButtonClass, open && styles.pressed)}
      aria-label="Files"
      aria-expanded={open}
      aria-controls={open ? PANEL_ID : undefined}
      title="Files (F6)"
      onClick={() => {
        wantsFocus.set(!open);
        showWorkspace(!open);
      }}
    >
      <Icon name="folder" />
    </button>
  );
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.key !== "F6" || event.ctrlKey || event.altKey || event.metaKey) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  const panel = document.getElementById(PANEL_ID);
  if (panel?.contains(document.activeElement)) {
    if (document.querySelector(`#${PANEL_ID}[data-covers]`)) showWorkspace(false);
    else focusMessageBox();
  } else {
    wantsFocus.set(true);
    showWorkspace(true);
  }
}

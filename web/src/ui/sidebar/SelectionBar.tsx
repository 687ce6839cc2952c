// What can be done with the selected chats.

import { useEffect, useState } from "react";
import type { SettingsResponse } from "../../core/api-types.ts";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatCount } from "../format.ts";
import { Button, IconButton } from "../widgets/buttons.tsx";
import ProjectDialog from "./ProjectDialog.tsx";
import styles from "./SelectionBar.module.css";
import { selectedChats, stopSelecting } from "./selection-state.ts";
import { archiveChats, deleteChats } from "./session-actions.ts";

interface Props {
  /** The chats of the list, of which some are selected. */
  shown: readonly Session[];
  archived: boolean;
}

export default function SelectionBar({ shown, archived }: Props) {
  const app = useApp();
  const ids = useStore(selectedChats);
  const [moving, setMoving] = useState(false);
  const chosen = shown.filter(({ id }) => ids?.has(id));
  const none = chosen.length === 0;
  useEffect(() => {
    document.querySelector<HTMLInputElement>("nav li input:checked, nav li input")?.focus(); // the menu's button is gone
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || document.querySelector("dialog[open], :popover-open")) return;
      event.preventDefault(); // the drawer stays open
      stopSelecting();
    };
    addEventListener("keydown", onKeyDown, true);
    return () => removeEventListener("keydown", onKeyDown, true);
  }, []);
  const archive = async () => {
    if (await archiveChats(app, chosen, !archived)) stopSelecting();
  };
  const remove = async () => {
    const { confirmed, optionChecked } = await askConfirmation(
      chosen.length === 1 ? "Delete 1 chat?" : `Delete ${formatCount(chosen.length)} chats?`,
      "Their messages and files are deleted, and shared links to them stop working. You can undo this for a few seconds.",
      "Delete",
      (await hasMemory(app)) ? "Also delete their memories" : undefined,
    );
    if (!confirmed) return;
    stopSelecting();
    deleteChats(
      app,
      chosen.map(({ id }) => id),
      optionChecked,
    );
  };
  return (
    <section className={styles.bar} aria-label="Selected chats">
      <p role="status">{formatCount(chosen.length)} selected</p>
      <Button small onClick={() => selectedChats.set(new Set(shown.map(({ id }) => id)))}>
        Select all
      </Button>
      <span className={styles.actions}>
        <IconButton
          name={archived ? "Unarchive selected" : "Archive selected"}
          icon="archive"
          disabled={none}
          onClick={() => void archive()}
        />
        <IconButton name="Move selected to project" icon="folder" disabled={none} onClick={() => setMoving(true)} />
        <IconButton name="Delete selected" icon="trash" disabled={none} onClick={() => void remove()} />
        <IconButton name="Stop selecting" icon="close" onClick={stopSelecting} />
      </span>
      {moving && <ProjectDialog chats={chosen} onMoved={stopSelecting} onClose={() => setMoving(false)} />}
    </section>
  );
}

async function hasMemory({ api }: ReturnType<typeof useApp>): Promise<boolean> {
  const settings = await api.get<SettingsResponse>("/api/settings").catch(() => null);
  return settings?.memory ?? false;
}

// What was deleted from the files of a chat: restored, or erased for good.

import { useCallback, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { TrashedItemListResponse, TrashedItemResponse, WorkspaceEntryResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { nameOf, parentOf, workspaceAddress } from "../../core/workspace.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatSize, formatTime } from "../format.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import text from "../widgets/text.module.css";
import styles from "./Workspace.module.css";

interface Props {
  sid: string;
  version: string;
  /** Files are to be read again. */
  onChanged: () => void;
}

export default function TrashView({ sid, version, onChanged }: Props) {
  const { api, toasts } = useApp();
  const [items, setItems] = useState<readonly TrashedItemResponse[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback(async () => {
    try {
      setItems((await api.get<TrashedItemListResponse>(workspaceAddress(sid, "trash"))).items);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, [api, sid]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: something may have been deleted meanwhile
  useEffect(() => void load(), [load, version]);
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const restore = (item: TrashedItemResponse) =>
    attempt(async () => {
      await api.post<WorkspaceEntryResponse>(workspaceAddress(sid, "restore"), { id: item.id });
      toasts.show(`Restored ${escapeInvisible(item.path)}`);
      await load();
      onChanged();
    });
  const erase = async (title: string, id: string | null) => {
    if (!(await askConfirmation(title, "This can’t be undone.", "Delete permanently")).confirmed) return;
    await attempt(async () => {
      await api.call("DELETE", workspaceAddress(sid, "trash", { id }), undefined, {}, LONG_MS);
      await load();
    });
  };
  return (
    <div className={styles.view}>
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      {!items && !problem && <Spinner name="Loading the trash" />}
      {items && (
        <div className={styles.viewHead}>
          <p className={text.quiet}>
            {items.length
              ? "Deleted files are kept for seven days, up to 100 deletions and 1 GB."
              : "The trash is empty. What you delete in this chat’s files stays here for seven days."}
          </p>
          {items.length > 0 && (
            <Button small onClick={() => void erase("Empty the trash?", null)}>
              Empty trash
            </Button>
          )}
        </div>
      )}
      <ItemList label="Deleted files">
        {items?.map((item) => {
          const name = escapeInvisible(nameOf(item.path));
          return (
            <Item
              key={item.id}
              title={name}
              facts={[
                item.path.includes("/") && `From ${escapeInvisible(parentOf(item.path))}`,
                item.kind === "directory" ? `Folder, ${formatSize(item.size)}` : formatSize(item.size),
                `Deleted ${formatTime(item.deleted_at)}`,
              ]}
            >
              <ItemAction name="Restore" of={name} onClick={() => void restore(item)} />
              <IconButton
                name={`Delete permanently: ${name}`}
                icon="trash"
                onClick={() => void erase(`Delete ${name} permanently?`, item.id)}
              />
            </Item>
          );
        })}
      </ItemList>
    </div>
  );
}

const LONG_MS = 60_000;

// How many files an answer changed. A click shows them.

import { useEffect } from "react";
import type { ThreadMessage } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount } from "../format.ts";
import { Icon } from "../widgets/icons.tsx";
import styles from "./ChangesBadge.module.css";
import { changeSets, loadChangeSets, wantedSet } from "./run-changes.ts";
import { showWorkspace, useOpenFile, wantsFocus, workspaceView } from "./workspace-state.ts";

export default function ChangesBadge({ sid, message }: { sid: string; message: ThreadMessage }) {
  const { api } = useApp();
  const hasPanel = useOpenFile() !== null;
  const known = useStore(changeSets);
  const { created_at, run_id } = message;
  useEffect(() => {
    if (hasPanel) loadChangeSets(api, sid, created_at);
  }, [api, sid, created_at, hasPanel]);
  const set = known?.sid === sid ? known.sets.find(({ id }) => id === run_id) : undefined;
  if (!set?.files) return null;
  return (
    <button
      type="button"
      className={styles.badge}
      title={set.names.slice(0, 10).join("\n")}
      onClick={() => {
        wantedSet.set(set.id);
        workspaceView.set("changes");
        wantsFocus.set(true);
        showWorkspace(true);
      }}
    >
      <Icon name="edit" />
      {set.files === 1 ? "1 file changed" : `${formatCount(set.files)} files changed`}
    </button>
  );
}

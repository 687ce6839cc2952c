import { useApp } from "../context.ts";
import { Button } from "../widgets/buttons.tsx";
import styles from "./ArchivedBanner.module.css";

/** Says that the open chat is archived. Unarchiving shows the list that it is in then. */
export function ArchivedBanner({ sid }: { sid: string }) {
  const { sessions, thread } = useApp();
  const unarchive = async () => {
    if (!(await sessions.patch(sid, { archived: false }))) return;
    void thread.get()?.refresh();
    if (sessions.state.get().archived) sessions.showArchived(false);
  };
  return (
    <p className={styles.banner} role="note" aria-label="Archived">
      Archived
      <Button small onClick={() => void unarchive()}>
        Unarchive
      </Button>
    </p>
  );
}

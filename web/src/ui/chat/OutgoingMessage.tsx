// A message on its way to the server. The server's own message replaces it.

import type { Outgoing } from "../../core/outbox.ts";
import { useApp } from "../context.ts";
import { navigate } from "../router.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Advice } from "../widgets/InlineCode.tsx";
import text from "../widgets/text.module.css";
import { focusMessageBox } from "./focus.ts";
import styles from "./Message.module.css";
import { FileCard, PlainText } from "./MessageParts.tsx";

export function OutgoingMessage({ item }: { item: Outgoing }) {
  const app = useApp();
  const refused = item.state === "refused";
  const edit = async () => {
    if (await app.takeBack(item)) navigate("/", true);
    focusMessageBox();
  };
  return (
    <article
      className={classNames(styles.message, styles.user, item.state === "sending" && styles.sending)}
      aria-label="You"
    >
      <div className={styles.bubble}>
        {item.files.map((file) => (
          <FileCard key={file.file_id} part={file} />
        ))}
        {item.text && <PlainText text={item.text} />}
      </div>
      <footer className={classNames(styles.actions, styles.visible)}>
        <span
          className={classNames(styles.progress, refused ? text.error : text.quiet)}
          role={refused ? "alert" : "status"}
        >
          <Advice text={progress(item)} />
        </span>
        {refused && (
          <Button small onClick={() => app.outbox.resend(item.key)}>
            Resend
          </Button>
        )}
        {item.problem !== null && (
          <Button small onClick={() => void edit()}>
            Edit
          </Button>
        )}
      </footer>
    </article>
  );
}

function progress(item: Outgoing): string {
  if (item.state === "refused") return `Not sent: ${item.problem}`;
  if (item.stopping) return "Stopping…";
  if (item.problem) return "Will be sent when reconnected";
  return item.state === "sending" ? "Sending…" : "";
}

// Shown instead of a chat that does not exist. What was typed or sent there and not stored can be used elsewhere.

import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { Button } from "../widgets/buttons.tsx";
import { CenteredScreen, usePageTitle } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";
import styles from "./Chat.module.css";

export default function ChatNotFound({ sid }: { sid: string }) {
  const app = useApp();
  usePageTitle("Chat not found");
  const sent = useStore(app.outbox.state).filter((item) => item.sid === sid && item.state !== "stored");
  const draft = app.drafts.read(sid);
  const unsent = [...sent, draft].filter((item) => item.text || item.files.length);
  const moveToNewChat = () => {
    app.moveToNewChat(sid);
    navigate("/");
  };
  const discard = () => {
    app.discardUnsent(sid);
    navigate("/");
  };
  return (
    <CenteredScreen>
      <h1>Chat not found</h1>
      <p>It may have been deleted.</p>
      {unsent.length > 0 && (
        <section className={styles.unsent} aria-label="Unsent messages">
          <h2>{unsent.length === 1 ? "This message was not sent:" : "These messages were not sent:"}</h2>
          {unsent.map((item, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the draft has no other identity
            <p key={n} className={text.plain}>
              {[...item.files.map((file) => file.name), item.text].filter(Boolean).join("\n")}
            </p>
          ))}
        </section>
      )}
      {unsent.length > 0 ? (
        <div className={text.row}>
          <Button onClick={discard}>Discard</Button>
          <Button variant="primary" onClick={moveToNewChat}>
            Use in a new chat
          </Button>
        </div>
      ) : (
        <Button variant="primary" onClick={() => navigate("/")}>
          New chat
        </Button>
      )}
    </CenteredScreen>
  );
}

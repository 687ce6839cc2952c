// A chat that the server has not created yet: its first message, and how sending it goes. The chat replaces it.

import { useEffect } from "react";
import { firstWords } from "../../core/session-list.ts";
import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { ScreenHeader } from "../widgets/Screen.tsx";
import styles from "./Chat.module.css";
import { Composer } from "./Composer.tsx";
import { CONVERSATION } from "./conversation.ts";
import { OutgoingMessage } from "./OutgoingMessage.tsx";
import thread from "./ThreadView.module.css";

export function PendingChat({ messageKey }: { messageKey: string }) {
  const app = useApp();
  const item = useStore(app.outbox.state).find(({ key }) => key === messageKey);
  const sid = item?.sid;
  useEffect(() => {
    if (sid === null) return;
    if (sid) app.drafts.move(messageKey, sid);
    navigate(sid ? `/c/${sid}` : "/", true); // without a message, there is nothing to send any more
  }, [app, sid, messageKey]);
  if (!item) return null;
  return (
    <div className={styles.chat}>
      <ScreenHeader title={firstWords(item.text) || "New chat"} />
      <section className={thread.scroll} aria-label="Conversation" {...CONVERSATION}>
        <div className={thread.thread}>
          <OutgoingMessage item={item} />
        </div>
      </section>
      <div className={styles.dock}>
        <Composer
          draftId={messageKey}
          busy={item.state !== "refused" && item.problem === null}
          stopping={item.stopping === true}
          onStop={() => void app.outbox.stop([item])}
          onSend={() => false} // the chat does not exist yet: what is typed stays a draft of it
          commands={[]}
        />
      </div>
    </div>
  );
}

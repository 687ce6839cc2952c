// The chat screen: header, messages, queue and composer.

import { useEffect, useMemo, useState } from "react";
import type { App } from "../../core/app.ts";
import { NEW_CHAT } from "../../core/drafts.ts";
import type { Outgoing } from "../../core/outbox.ts";
import type { Thread } from "../../core/thread.ts";
import type { FilePart } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { openNewChat } from "../new-chat.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { classNames } from "../widgets/class-names.ts";
import { ScreenHeader } from "../widgets/Screen.tsx";
import { ArchivedBanner } from "./ArchivedBanner.tsx";
import styles from "./Chat.module.css";
import { ChatHeader } from "./ChatHeader.tsx";
import { ChatNotFound } from "./ChatNotFound.tsx";
import { Composer } from "./Composer.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import { lastSession } from "./last-session.ts";
import { MessageQueue } from "./MessageQueue.tsx";
import { ModelPicker } from "./ModelPicker.tsx";
import type { SlashCommand } from "./SlashCommands.tsx";
import { ThreadView } from "./ThreadView.tsx";
import { compactContext, undoTurn } from "./turn-actions.ts";
import { Welcome } from "./Welcome.tsx";

export function Chat({ sid }: { sid: string | null }) {
  const app = useApp();
  const thread = useStore(app.thread);
  useEffect(() => app.openThread(sid), [app, sid]);
  if (sid === null) return <NewChat />;
  if (thread?.sid !== sid) return <div className={styles.chat} />;
  return <OpenChat key={sid} thread={thread} />;
}

function OpenChat({ thread }: { thread: Thread }) {
  const app = useApp();
  const state = useStore(thread.state);
  const { session } = state;
  const commands = useMemo(() => slashCommands(app, thread), [app, thread]);
  const sent = useStore(app.outbox.state).filter((item) => item.sid === thread.sid && isOnItsWay(item));
  if (state.notFound) return <ChatNotFound sid={thread.sid} />;
  const running = session?.active_run != null;
  return (
    <div className={styles.chat}>
      <ChatHeader thread={thread} session={session} />
      {session?.archived && <ArchivedBanner sid={thread.sid} />}
      <ThreadView thread={thread} state={state} />
      <div className={styles.dock}>
        {state.problem && <Alert text={state.problem} onDismiss={thread.dismissProblem} />}
        <MessageQueue queued={session?.queued_runs ?? []} thread={thread} />
        <Composer
          draftId={thread.sid}
          busy={running || sent.length > 0}
          stopping={running ? state.stopping !== null : sent.every((item) => item.stopping)}
          onStop={() => void (running ? thread.stop() : app.outbox.stop(sent))}
          onSend={(text, files) => {
            app.outbox.add(thread.sid, { text, files, model: thread.model });
            return true;
          }}
          commands={commands}
          modelId={session?.model ?? null}
        >
          {session && <ModelPicker selected={session} onChoose={(fields) => void thread.patch(fields)} />}
          <ContextMeter sid={thread.sid} messages={state.messages} />
        </Composer>
      </div>
    </div>
  );
}

/** Whether the server may have the message by now, or will have it in a moment. */
const isOnItsWay = (item: Outgoing) => item.state !== "refused" && item.problem === null;

function NewChat() {
  const app = useApp();
  const [selected, setSelected] = useState<{ model?: string; agent?: string }>({});
  const send = (text: string, files: readonly FilePart[]) => {
    const previous = lastSession();
    const chat = { ...selected, ...(previous ? { previous_session_id: previous } : {}) }; // U4
    const model = selected.model ?? app.defaultModel() ?? undefined; // the one that is shown
    navigate(`/new/${app.outbox.addChat(chat, { text, files, model })}`);
    return true;
  };
  return (
    <div className={classNames(styles.chat, styles.newChat)}>
      <ScreenHeader title="New chat" />
      <Welcome />
      <div className={styles.dock}>
        <Composer
          draftId={NEW_CHAT}
          busy={false}
          stopping={false}
          onStop={() => undefined}
          onSend={send}
          commands={GENERAL_COMMANDS}
          modelId={selected.model ?? null}
        >
          <ModelPicker
            selected={{ model: selected.model ?? null, agent: selected.agent ?? "chat" }}
            onChoose={(fields) => setSelected((now) => ({ ...now, ...fields }))}
          />
        </Composer>
      </div>
    </div>
  );
}

const COMPARE: SlashCommand = { name: "compare", description: "Compare models", run: () => navigate("/compare") };
const GENERAL_COMMANDS: readonly SlashCommand[] = [
  COMPARE,
  { name: "settings", description: "Open settings", run: () => navigate("/settings") },
];

function slashCommands(app: App, thread: Thread): SlashCommand[] {
  const regenerate = () => {
    const last = thread.state.get().messages.at(-1);
    if (last) void thread.retry(last.id);
  };
  return [
    { name: "new", description: "Start a new chat", run: () => openNewChat(app) },
    { name: "stop", description: "Stop generating", run: () => void thread.stop() },
    { name: "undo", description: "Undo last turn", run: () => void undoTurn(app, thread) },
    { name: "redo", description: "Redo", run: () => void thread.redo() },
    { name: "retry", description: "Regenerate", run: regenerate },
    { name: "compact", description: "Compact context", run: () => void compactContext(app, thread) },
    {
      name: "archive",
      description: "Archive chat",
      run: () => void app.sessions.patch(thread.sid, { archived: true }),
    },
    COMPARE,
  ];
}

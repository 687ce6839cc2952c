// The chat screen: header, messages, queue and composer.

import { useEffect, useMemo, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { App } from "../../core/app.ts";
import type { Thread } from "../../core/thread.ts";
import type { FilePart } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { CenteredScreen, ScreenHeader } from "../widgets/Screen.tsx";
import styles from "./Chat.module.css";
import { ChatHeader } from "./ChatHeader.tsx";
import { Composer } from "./Composer.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import { lastSession } from "./last-session.ts";
import { MessageQueue } from "./MessageQueue.tsx";
import { ModelPicker } from "./ModelPicker.tsx";
import type { SlashCommand } from "./SlashCommands.tsx";
import { ThreadView } from "./ThreadView.tsx";
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
  if (state.notFound) {
    return (
      <CenteredScreen>
        <h1>Chat not found</h1>
        <p>It may have been deleted.</p>
        <Button variant="primary" onClick={() => navigate("/")}>
          New chat
        </Button>
      </CenteredScreen>
    );
  }
  return (
    <div className={styles.chat}>
      <ChatHeader thread={thread} session={session} />
      <ThreadView thread={thread} state={state} />
      <div className={styles.dock}>
        {state.problem && <Alert text={state.problem} onDismiss={thread.dismissProblem} />}
        <MessageQueue queued={session?.queued_runs ?? []} thread={thread} />
        <Composer
          draftId={thread.sid}
          busy={session?.active_run != null}
          stopping={state.stopping !== null}
          onStop={() => void thread.stop()}
          onSend={(text, files) => {
            app.outbox.add(thread.sid, text, files);
            return true;
          }}
          commands={commands}
        >
          {session && <ModelPicker selected={session} onChoose={(fields) => void thread.patch(fields)} />}
          <ContextMeter sid={thread.sid} messages={state.messages} />
        </Composer>
      </div>
    </div>
  );
}

function NewChat() {
  const app = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const [selected, setSelected] = useState<{ model?: string; agent?: string }>({});
  const send = async (text: string, files: readonly FilePart[]): Promise<boolean> => {
    try {
      setProblem(null);
      navigate(`/c/${await app.startSession(text, files, selected, lastSession())}`);
      return true;
    } catch (error) {
      setProblem(errorMessage(error));
      return false;
    }
  };
  return (
    <div className={classNames(styles.chat, styles.newChat)}>
      <ScreenHeader title="New chat" />
      <Welcome />
      <div className={styles.dock}>
        {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
        <Composer draftId="new" busy={false} stopping={false} onStop={() => undefined} onSend={send} commands={[]}>
          <ModelPicker
            selected={{ model: selected.model ?? null, agent: selected.agent ?? "chat" }}
            onChoose={(fields) => setSelected((now) => ({ ...now, ...fields }))}
          />
        </Composer>
      </div>
    </div>
  );
}

function slashCommands({ sessions }: App, thread: Thread): SlashCommand[] {
  const regenerate = () => {
    const last = thread.state.get().messages.at(-1);
    if (last) void thread.retry(last.id);
  };
  return [
    { name: "new", description: "Start a new chat", run: () => navigate("/") },
    { name: "stop", description: "Stop generating", run: () => void thread.stop() },
    { name: "undo", description: "Undo last turn", run: () => void thread.undo() },
    { name: "redo", description: "Redo", run: () => void thread.redo() },
    { name: "retry", description: "Regenerate", run: regenerate },
    { name: "compact", description: "Compact context", run: () => void thread.compact() },
    {
      name: "archive",
      description: "Archive chat",
      run: () => void sessions.patch(thread.sid, { archived: true }),
    },
    { name: "compare", description: "Compare models", run: () => navigate("/compare") },
  ];
}

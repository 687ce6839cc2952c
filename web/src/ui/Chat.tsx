// The chat screen: a head, the thread, what is queued, and the composer.

import { useEffect, useMemo, useState } from "react";
import type { Problem } from "../core/api.ts";
import type { Thread } from "../core/thread.ts";
import type { FilePart } from "../core/wire.ts";
import { ChatHead } from "./ChatHead.tsx";
import { Composer } from "./Composer.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import { useApp, useStore } from "./context.ts";
import { ModelPicker } from "./ModelPicker.tsx";
import { Queue } from "./Queue.tsx";
import { navigate } from "./router.tsx";
import type { SlashCommand } from "./Slash.tsx";
import { ThreadView } from "./ThreadView.tsx";
import { Welcome } from "./Welcome.tsx";
import { IconButton } from "./widgets.tsx";

export function Chat({ sid }: { sid: string | null }) {
  const app = useApp();
  const thread = useStore(app.thread);
  useEffect(() => {
    app.open(sid);
  }, [app, sid]);
  if (sid === null) return <NewChat />;
  if (thread?.sid !== sid) return <div className="screen" />;
  return <OpenChat key={sid} thread={thread} />;
}

function OpenChat({ thread }: { thread: Thread }) {
  const app = useApp();
  const state = useStore(thread.state);
  const { session } = state;
  const busy = session?.active_run != null;
  const commands = useCommands(thread);
  useEffect(() => {
    document.title = `${session?.title || "Chat"} · Holdfast`;
  }, [session?.title]);
  if (state.missing) {
    return (
      <div className="screen empty">
        <h1>This conversation is gone</h1>
        <p>It was deleted, here or in another tab.</p>
        <button type="button" className="button primary" onClick={() => navigate("/")}>
          Start a new one
        </button>
      </div>
    );
  }
  return (
    <div className="screen chat">
      <ChatHead thread={thread} session={session} />
      <ThreadView thread={thread} state={state} />
      <div className="dock">
        {state.problem && <ProblemBar text={state.problem} onClose={thread.forgetProblem} />}
        <Queue queued={session?.queued_runs ?? []} thread={thread} />
        <Composer
          draftOf={thread.sid}
          busy={busy}
          stopping={state.stopping !== null}
          onStop={() => void thread.stop()}
          onSend={(text, files) => {
            app.outbox.add(thread.sid, text, files);
            return true;
          }}
          commands={commands}
        >
          {session && <ModelPicker chosen={session} onChoose={(fields) => void thread.patch(fields)} />}
          <ContextMeter sid={thread.sid} messages={state.messages} />
        </Composer>
      </div>
    </div>
  );
}

export function ProblemBar({ text, onClose }: { text: string; onClose: () => void }) {
  return (
    <div className="problem" role="alert">
      <span>{text}</span>
      <IconButton name="Dismiss" icon="close" onClick={onClose} />
    </div>
  );
}

function NewChat() {
  const app = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const [chosen, setChosen] = useState<{ model?: string; agent?: string }>({});
  useEffect(() => {
    document.title = "Holdfast";
  }, []);
  const begin = async (text: string, files: readonly FilePart[]): Promise<boolean> => {
    try {
      setProblem(null);
      const sid = await app.begin(text, files, chosen, lastSession());
      navigate(`/c/${sid}`);
      return true;
    } catch (error) {
      setProblem((error as Problem).message);
      return false;
    }
  };
  return (
    <div className="screen chat new">
      <ChatHead thread={null} session={null} />
      <Welcome />
      <div className="dock">
        {problem && <ProblemBar text={problem} onClose={() => setProblem(null)} />}
        <Composer draftOf="new" busy={false} stopping={false} onStop={() => undefined} onSend={begin} commands={[]}>
          <ModelPicker
            chosen={{ model: chosen.model ?? null, agent: chosen.agent ?? "chat" }}
            onChoose={(fields) => setChosen((now) => ({ ...now, ...fields }))}
          />
        </Composer>
      </div>
    </div>
  );
}

/** The conversation that was open last in this tab. */
function lastSession(): string | null {
  try {
    return sessionStorage.getItem("holdfast.last");
  } catch {
    return null;
  }
}

function useCommands(thread: Thread): SlashCommand[] {
  const app = useApp();
  return useMemo(
    () => [
      { name: "new", does: "Start a new chat", run: () => navigate("/") },
      { name: "stop", does: "Stop the answer", run: () => void thread.stop() },
      { name: "undo", does: "Step back before the last turn", run: () => void thread.undo() },
      { name: "redo", does: "Take the step back again", run: () => void thread.redo() },
      {
        name: "retry",
        does: "Answer the last message again",
        run: () => {
          const last = thread.state.get().messages.at(-1);
          if (last) void thread.retry(last.id);
        },
      },
      { name: "compact", does: "Summarise what was said for the model", run: () => void thread.compact() },
      {
        name: "archive",
        does: "Put this chat away",
        run: () => void app.sessions.patch(thread.sid, { archived: true }),
      },
      { name: "compare", does: "Ask several models at once", run: () => navigate("/compare") },
    ],
    [app, thread],
  );
}

// The chat screen: header, messages, queue and composer.

import { useEffect, useMemo } from "react";
import { errorMessage } from "../../core/api.ts";
import type { App } from "../../core/app.ts";
import { NEW_CHAT } from "../../core/drafts.ts";
import type { Outgoing } from "../../core/outbox.ts";
import type { Thread } from "../../core/thread.ts";
import type { FilePart } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { classNames } from "../widgets/class-names.ts";
import { ScreenHeader } from "../widgets/Screen.tsx";
import { AgentDifferences, AgentOptions } from "./AgentOptions.tsx";
import styles from "./Chat.module.css";
import { ChatHeader } from "./ChatHeader.tsx";
import { ChatNotFound } from "./ChatNotFound.tsx";
import { Composer } from "./Composer.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import { lastSession } from "./last-session.ts";
import { MessageQueue } from "./MessageQueue.tsx";
import { type ModelChange, ModelPicker } from "./ModelPicker.tsx";
import type { SlashCommand } from "./SlashCommands.tsx";
import { ThreadView } from "./ThreadView.tsx";
import { compactContext, undoTurn } from "./turn-actions.ts";
import { type OptionValue, useAgentOptions } from "./use-agent-options.ts";
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
  const program = useProgram(session?.agent ?? null);
  const settled = state.messages.findLast(({ status }) => status !== "streaming")?.id;
  const { offers, reload } = useAgentOptions(program, thread.sid, settled);
  const sent = useStore(app.outbox.state).filter((item) => item.sid === thread.sid && isOnItsWay(item));
  if (state.notFound) return <ChatNotFound sid={thread.sid} />;
  const running = session?.active_run != null;
  const onChooseAgent = (change: ModelChange) => void thread.patch(forAgent(app, change, session?.agent));
  return (
    <div className={styles.chat}>
      <ChatHeader thread={thread} session={session} />
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
          commands={program === null ? commands : commands.filter(({ name }) => name !== "compact")}
          agentCommands={offers.commands}
          modelId={session?.model ?? null}
          above={session && program && <AgentDifferences cwd={session.cwd} options={offers.options} />}
        >
          {session && <ModelPicker selected={session} onChoose={onChooseAgent} />}
          {session && program && (
            <AgentOptions
              agent={program}
              cwd={session.cwd}
              options={offers.options}
              onChooseDirectory={(cwd) => thread.tryPatch({ cwd })}
              onChooseOption={(id, value) =>
                thread.tryPatch({ agent_options: { ...session.agent_options, [id]: value } })
              }
              reload={reload}
            />
          )}
          <ContextMeter sid={thread.sid} agent={session?.agent} messages={state.messages} />
        </Composer>
      </div>
    </div>
  );
}

/** The agent's name if it runs as a program. */
function useProgram(agent: string | null): string | null {
  const { agents } = useStore(useApp().catalog);
  return agents.some((item) => item.name === agent && item.is_program) ? agent : null;
}

/** Options belong to one agent, and a program has a model of its own. */
function forAgent(app: App, change: ModelChange, before: string | null | undefined) {
  if (change.agent === undefined || change.agent === before) return change;
  const cleared = app.isProgram(change.agent) ? { model: null } : { cwd: null };
  return { ...change, ...cleared, agent_options: null };
}

/** Whether the server may have the message by now, or will have it in a moment. */
const isOnItsWay = (item: Outgoing) => item.state !== "refused" && item.problem === null;

function NewChat() {
  const app = useApp();
  const { agents, loaded } = useStore(app.catalog);
  const choices = useStore(app.newChat.choices);
  const removed = loaded && choices.agent != null && !agents.some(({ name }) => name === choices.agent);
  const selected = removed ? {} : choices;
  const program = useProgram(selected.agent ?? null);
  const { offers, reload } = useAgentOptions(program, null, null);
  const options = offers.options.map((option) => ({
    ...option,
    value: selected.agent_options?.[option.id] ?? option.value,
  }));
  const cwd = selected.cwd ?? null;
  const send = (text: string, files: readonly FilePart[]) => {
    const previous = lastSession();
    const chat = { ...selected, ...(previous ? { previous_session_id: previous } : {}) }; // U4
    // The model that is shown; an agent that is a program has its own.
    const model = program ? undefined : (selected.model ?? app.defaultModel() ?? undefined);
    navigate(`/new/${app.outbox.addChat(chat, { text, files, model })}`);
    app.newChat.clear();
    return true;
  };
  const chooseDirectory = async (path: string | null) => {
    try {
      app.newChat.choose({ cwd: path === null ? null : (await app.api.checkDirectory(path)).path });
      return null;
    } catch (error) {
      return errorMessage(error);
    }
  };
  const chooseOption = async (id: string, value: OptionValue) => {
    app.newChat.choose({ agent_options: { ...app.newChat.choices.get().agent_options, [id]: value } });
    return null;
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
          agentCommands={offers.commands}
          modelId={selected.model ?? null}
          above={program && <AgentDifferences cwd={cwd} options={options} />}
        >
          <ModelPicker
            selected={{ model: selected.model ?? null, agent: selected.agent ?? "chat" }}
            onChoose={(change) => app.newChat.choose(forAgent(app, change, selected.agent))}
          />
          {program && (
            <AgentOptions
              agent={program}
              cwd={cwd}
              options={options}
              onChooseDirectory={chooseDirectory}
              onChooseOption={chooseOption}
              reload={reload}
            />
          )}
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
    { name: "new", description: "Start a new chat", run: () => navigate("/") },
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

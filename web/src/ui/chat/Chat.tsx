// The chat screen: header, messages, queue and composer.

import { type ReactNode, useEffect, useMemo } from "react";
import { errorMessage } from "../../core/api.ts";
import type { App } from "../../core/app.ts";
import { NEW_CHAT } from "../../core/drafts.ts";
import type { ChatChoices } from "../../core/new-chat-choices.ts";
import type { Outgoing } from "../../core/outbox.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import type { FilePart, Session } from "../../core/types.ts";
import { questionOf } from "../../core/user-questions.ts";
import { workOf } from "../../core/workspace.ts";
import { useApp, useStore } from "../context.ts";
import { lazyComponent } from "../lazy-load.ts";
import { openNewChat } from "../open-new-chat.ts";
import { useProject } from "../projects/use-project.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { classNames } from "../widgets/class-names.ts";
import { LazyPart } from "../widgets/LazyPart.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import { ScreenHeader } from "../widgets/Screen.tsx";
import { useMediaQuery } from "../widgets/use-media-query.ts";
import { NARROW, OpenFileProvider, openNamedFile, workspaceOpen } from "../workspace/workspace-state.ts";
import { ArchivedBanner } from "./ArchivedBanner.tsx";
import styles from "./Chat.module.css";
import { ChatHeader } from "./ChatHeader.tsx";
import { ChatSettingsButton, MemoryOffBadge } from "./ChatSettingsButton.tsx";
import { Composer } from "./Composer.tsx";
import { ContextMeter } from "./ContextMeter.tsx";
import { editLastMessage } from "./edit-request.ts";
import { closeFind, findOpen } from "./find-state.ts";
import { lastSession } from "./last-session.ts";
import { PersonaLabel } from "./lazy-persona.ts";
import { type ModelChange, ModelPicker } from "./ModelPicker.tsx";
import { ProjectBadge } from "./ProjectBadge.tsx";
import type { SlashCommand } from "./SlashCommands.tsx";
import { ThreadView } from "./ThreadView.tsx";
import { compactContext, redoTurn, regenerate, undoTurn } from "./turn-actions.ts";
import { type OptionValue, useAgentOptions } from "./use-agent-options.ts";
import { Welcome } from "./Welcome.tsx";

const MessageQueue = lazyOverlay(() => import("./MessageQueue.tsx"));
const QuoteButton = lazyOverlay(() => import("./QuoteButton.tsx"));
const FindPanel = lazyOverlay(() => import("./FindPanel.tsx"), closeFind);
const AgentOptions = lazyOverlay(() => import("./AgentOptions.tsx"));
const AgentDifferences = lazyOverlay(() => import("./AgentDifferences.tsx"));
const ChatNotFound = lazyOverlay(() => import("./ChatNotFound.tsx"));
const WorkspacePanel = lazyComponent(() => import("../workspace/WorkspacePanel.tsx"));

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
  const finding = useStore(findOpen);
  const { agents } = useStore(app.catalog);
  useEffect(() => closeFind, []);
  const commands = useMemo(() => slashCommands(app, thread, session), [app, thread, session]);
  const program = useProgram(session?.agent ?? null);
  const settled = state.messages.findLast(({ status }) => status !== "streaming")?.id;
  const { offers, reload } = useAgentOptions(program, thread.sid, settled);
  const sent = useStore(app.outbox.state).filter((item) => item.sid === thread.sid && isOnItsWay(item));
  if (state.notFound) return <ChatNotFound sid={thread.sid} />;
  const running = session?.active_run != null;
  const answer = answerer(thread, state.messages);
  const onChooseAgent = (change: ModelChange) => {
    if (change.model) app.newChat.rememberModel(change.model);
    void thread.patch(forAgent(app, change, session?.agent));
  };
  return (
    <ChatWithFiles sid={thread.sid} version={`${session?.agent} ${session?.cwd} ${workOf(state.messages)}`}>
      <ChatHeader thread={thread} session={session} />
      {session?.archived && <ArchivedBanner sid={thread.sid} />}
      <div className={styles.reading}>
        <ThreadView thread={thread} state={state} />
        {finding && <FindPanel sid={thread.sid} />}
        <QuoteButton sid={thread.sid} />
      </div>
      <div className={styles.dock}>
        {state.problem && <Alert text={state.problem} onDismiss={thread.dismissProblem} />}
        <MessageQueue queued={session?.queued_runs ?? []} thread={thread} />
        <Composer
          draftId={thread.sid}
          busy={running || sent.length > 0}
          stopping={running ? state.stopping !== null : sent.every((item) => item.stopping)}
          onStop={() => void (running ? thread.stop() : app.outbox.stop(sent))}
          onEditLast={() => editLastMessage(thread)}
          canSteer={running && agents.some((agent) => agent.name === session?.agent && agent.can_steer)}
          answering={answer !== null}
          onSend={(text, files, how) => {
            if (answer && how === "queue" && !files.length) return answer(text);
            thread.send(text, files, how);
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
          <ContextMeter sid={thread.sid} agent={session?.agent} model={thread.model} messages={state.messages} />
        </Composer>
      </div>
    </ChatWithFiles>
  );
}

/** The chat, and the files of its agent beside or over it. */
function ChatWithFiles({ sid, version, children }: { sid: string; version: string; children: ReactNode }) {
  const open = useStore(workspaceOpen);
  const covers = useMediaQuery(NARROW) && open;
  return (
    <OpenFileProvider value={openNamedFile}>
      <div className={styles.withFiles}>
        <div className={styles.chat} inert={covers}>
          {children}
        </div>
        {open && (
          <LazyPart>
            <WorkspacePanel key={sid} sid={sid} covers={covers} version={version} />
          </LazyPart>
        )}
      </div>
    </OpenFileProvider>
  );
}

/** The agent's name if it runs as a program here: one behind a gateway has no options of ours. */
function useProgram(agent: string | null): string | null {
  const { agents } = useStore(useApp().catalog);
  return agents.some((item) => item.name === agent && item.is_program && !item.url) ? agent : null;
}

/** Options belong to one agent, and a program has a model of its own. */
function forAgent(app: App, change: ModelChange, before: string | null | undefined) {
  if (change.agent === undefined || change.agent === before) return change;
  const cleared = app.isProgram(change.agent) ? { model: null } : { cwd: null };
  return { ...change, ...cleared, agent_options: null };
}

/** Answers the model's question with text; null if it asks nothing, or takes no other answer than its options. */
function answerer(thread: Thread, messages: readonly ThreadMessage[]) {
  const { approval, run_id: run } = messages.findLast((message) => message.approval) ?? {};
  if (!approval || !run || !questionOf(approval)?.takesText) return null;
  const answerWith = (answer: string) => ({ action: "accept", content: { answer } }) as const;
  return async (text: string) => Boolean(await thread.answerInput(run, approval.approval_id, answerWith(text)));
}

/** Whether the server may have the message by now, or will have it in a moment. */
const isOnItsWay = (item: Outgoing) => item.state !== "refused" && item.problem === null;

function NewChat() {
  const app = useApp();
  const { agents, models, loaded } = useStore(app.catalog);
  const choices = useStore(app.newChat.choices);
  const lastModel = useStore(app.newChat.lastModel);
  useEffect(() => app.checkCatalog(), [app]);
  const removed = loaded && choices.agent != null && !agents.some(({ name }) => name === choices.agent);
  const project = useProject(choices.project);
  const known: ChatChoices = removed ? { ...choices, agent: null, cwd: null, agent_options: null } : choices;
  const kept = project?.agent && known.agent == null ? { ...known, agent: project.agent } : known;
  const program = useProgram(kept.agent ?? null);
  const found = models.find(({ id }) => id === lastModel);
  const usable = lastModel !== null && !project?.model && (found?.available ?? !loaded);
  const selected = usable && program === null && kept.model == null ? { ...kept, model: lastModel } : kept;
  const { offers, reload } = useAgentOptions(program, null, null);
  const options = offers.options.map((option) => ({
    ...option,
    value: selected.agent_options?.[option.id] ?? option.value,
  }));
  const cwd = selected.cwd ?? null;
  const send = (text: string, files: readonly FilePart[]) => {
    const previous = lastSession();
    // A boundary of memory: the server commits the previous chat now.
    const chat = { ...selected, ...(previous ? { previous_session_id: previous } : {}) };
    // The model that is shown; an agent that is a program has its own.
    const model = program ? undefined : (selected.model ?? app.defaultModel(selected.project) ?? undefined);
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
      <ScreenHeader title="New chat">
        <ProjectBadge project={selected.project} />
        {selected.persona && (
          <LazyPart>
            <PersonaLabel chosen={selected.persona} />
          </LazyPart>
        )}
        <MemoryOffBadge chat={selected} />
        <ChatSettingsButton
          chat={{ ...selected, agent: selected.agent ?? null }}
          onSave={async (fields) => {
            if (fields.model !== undefined) app.newChat.rememberModel(fields.model);
            app.newChat.choose(fields);
            return null;
          }}
        />
      </ScreenHeader>
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
            selected={{
              model: selected.model ?? null,
              agent: selected.agent ?? "chat",
              project: selected.project ?? null,
            }}
            onChoose={(change) => {
              if (change.model) app.newChat.rememberModel(change.model);
              app.newChat.choose(forAgent(app, change, selected.agent));
            }}
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
  { name: "projects", description: "Open projects", run: () => navigate("/projects") },
  { name: "settings", description: "Open settings", run: () => navigate("/settings") },
];

/** The commands of a chat, as it is: nothing can be stopped, undone or redone at any time. */
function slashCommands(app: App, thread: Thread, session: Session | null): SlashCommand[] {
  const when = (possible: unknown, command: SlashCommand) => (possible ? [command] : []);
  const answerAgain = () => {
    const last = thread.state.get().messages.at(-1);
    if (last) void regenerate(app, thread, last.id);
  };
  return [
    { name: "new", description: "Start a new chat", run: () => openNewChat(app) },
    ...when(session?.active_run, { name: "stop", description: "Stop generating", run: () => void thread.stop() }),
    ...when(session?.head, { name: "undo", description: "Undo last message", run: () => void undoTurn(app, thread) }),
    ...when(session?.can_redo, { name: "redo", description: "Redo", run: () => void redoTurn(thread) }),
    ...when(session?.head, { name: "regenerate", description: "Regenerate last answer", run: answerAgain }),
    { name: "compact", description: "Summarize older messages", run: () => void compactContext(app, thread) },
    {
      name: "archive",
      description: "Archive chat",
      run: () => void app.sessions.patch(thread.sid, { archived: true }),
    },
    COMPARE,
  ];
}

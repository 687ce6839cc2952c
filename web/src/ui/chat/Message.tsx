// One message of the thread: its parts, its notice and its actions.

import { memo, useEffect, useState } from "react";
import { isEdited, isWhole, wasLeftStopped } from "../../core/answer-ends.ts";
import { tokensPerSecond } from "../../core/answer-speed.ts";
import { editDraft, NO_DRAFT } from "../../core/drafts.ts";
import { unansweredCalls } from "../../core/late-approvals.ts";
import { modelName } from "../../core/models.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { questionOf } from "../../core/user-questions.ts";
import { useApp, useStore } from "../context.ts";
import { formatCost, formatCount, formatDateTime, formatDuration, formatSpeed, formatTime } from "../format.ts";
import { Link, navigate } from "../router.tsx";
import { CopyButton, IconButton, iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { LazyPart } from "../widgets/LazyPart.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import { PulseDot } from "../widgets/PulseDot.tsx";
import text from "../widgets/text.module.css";
import { AnswerEditor } from "./AnswerEditor.tsx";
import { editRequest } from "./edit-request.ts";
import { focusMessageBox, focusVersionButton } from "./focus.ts";
import { PersonaLabel } from "./lazy-persona.ts";
import styles from "./Message.module.css";
import { MessageEditor } from "./MessageEditor.tsx";
import { MessageParts, textOf } from "./MessageParts.tsx";
import { RegenerateMenu } from "./RegenerateMenu.tsx";
import { editMessage } from "./turn-actions.ts";
import { unreadable } from "./use-uploads.ts";

const Approval = lazyOverlay(() => import("./Approval.tsx"));
const UserQuestion = lazyOverlay(() => import("./UserQuestion.tsx"));
const Notice = lazyOverlay(() => import("./Notice.tsx"));
const ChangesBadge = lazyOverlay(() => import("../workspace/ChangesBadge.tsx"));
const InputForm = lazyOverlay(() => import("./InputForm.tsx"));

interface Props {
  message: ThreadMessage;
  thread: Thread;
  busy: boolean;
  canContinue: boolean;
  last: boolean;
}

export const MessageView = memo(function MessageView(props: Props) {
  return props.message.role === "user" ? <UserMessage {...props} /> : <AssistantMessage {...props} />;
});

function UserMessage({ message, thread }: Props) {
  const app = useApp();
  const { drafts } = app;
  const draftId = editDraft(message.id);
  // A change that was left unsent is shown again, without taking the focus.
  const [editing, setEditing] = useState<"restored" | "chosen" | "requested" | null>(() =>
    drafts.read(draftId).text ? "restored" : null,
  );
  const requested = useStore(editRequest) === message.id;
  useEffect(() => {
    if (!requested) return;
    editRequest.set(null);
    setEditing("requested");
  }, [requested]);
  const files = message.parts.filter((part) => part.type === "file").filter((file) => !file.missing);
  if (editing) {
    return (
      <article className={styles.message} aria-label="You">
        <MessageEditor
          label="Edit message"
          text={textOf(message.parts)}
          hasFiles={files.length > 0}
          action="Send"
          draftId={draftId}
          autoFocus={editing !== "restored"}
          onClose={() => {
            setEditing(null);
            if (editing === "requested") focusMessageBox();
          }}
          onDone={async (edited) => {
            if (!(await editMessage(app, thread, message.id, edited, files))) return;
            drafts.write(draftId, NO_DRAFT);
            setEditing(null);
            focusMessageBox();
          }}
        />
      </article>
    );
  }
  return (
    <article className={classNames(styles.message, styles.user)} aria-label="You" data-id={message.id} tabIndex={-1}>
      <div className={styles.bubble}>
        <MessageParts parts={message.parts} growing={false} plain />
      </div>
      <footer className={styles.actions}>
        <VersionSwitcher message={message} thread={thread} />
        <Timestamp iso={message.created_at} />
        <CopyButton text={() => textOf(message.parts)} />
        <IconButton name="Edit" icon="edit" onClick={() => setEditing("chosen")} />
      </footer>
    </article>
  );
}

function AssistantMessage({ message, thread, busy, canContinue, last }: Props) {
  const { api, drafts } = useApp();
  const growing = message.status === "streaming";
  const [editing, setEditing] = useState<"restored" | "chosen" | null>(() =>
    drafts.read(editDraft(message.id)).text ? "restored" : null,
  );
  if (editing && !growing) {
    return (
      <AnswerEditor
        message={message}
        thread={thread}
        autoFocus={editing === "chosen"}
        onClose={() => setEditing(null)}
      />
    );
  }
  const question = message.approval && questionOf(message.approval);
  return (
    <article
      className={classNames(styles.message, last && styles.last)}
      aria-label="Assistant"
      aria-busy={growing}
      data-id={message.id}
      tabIndex={-1}
      data-status={message.status}
    >
      {message.persona && (
        <LazyPart>
          <PersonaLabel persona={message.persona} />
        </LazyPart>
      )}
      <MessageParts parts={message.parts} growing={growing} plain={false} />
      {question && message.approval && message.run_id && (
        <UserQuestion
          key={message.approval.approval_id}
          question={question}
          onAnswer={(answer) => thread.answerInput(message.run_id ?? "", message.approval?.approval_id ?? "", answer)}
        />
      )}
      {!question && message.approval && message.run_id && (
        <Approval
          request={message.approval}
          onDecide={(...answer) => thread.decide(message.run_id ?? "", ...answer)}
          now={api.serverNow}
        />
      )}
      {message.input && message.run_id && (
        <InputForm
          key={message.input.request_id}
          request={message.input}
          onAnswer={(id, answer) => thread.answerInput(message.run_id ?? "", id, answer)}
        />
      )}
      {growing && !message.approval && !message.input && <Generating message={message} />}
      {!growing && hasNotice(message) && (
        <Notice message={message} thread={thread} busy={busy} canContinue={canContinue} last={last} />
      )}
      {!growing && <UnreadFiles message={message} thread={thread} />}
      {!growing && message.parts.some(({ type }) => type === "tool") && (
        <ChangesBadge sid={thread.sid} message={message} />
      )}
      {!growing && (
        <AssistantActions message={message} thread={thread} last={last} onEdit={() => setEditing("chosen")} />
      )}
    </article>
  );
}

/** Whether anything but its normal end is to be said. */
export function hasNotice(message: ThreadMessage): boolean {
  const { recovery, parts } = message;
  return !isWhole(message) || recovery?.state === "pending" || unansweredCalls(parts).length > 0;
}

function Generating({ message: { parts, retrying } }: { message: ThreadMessage }) {
  return (
    <p className={styles.generating}>
      <span className={styles.dots}>
        <PulseDot />
        <PulseDot />
        <PulseDot />
      </span>
      {retrying ? (
        <span role="status">
          {retrying.message} Retrying ({retrying.attempt} of {retrying.attempts})…
        </span>
      ) : (
        <span className={parts.length === 0 ? undefined : text.visuallyHidden}>Generating…</span>
      )}
    </p>
  );
}

/** Names the files of the question that the model could not read. */
function UnreadFiles({ message: { parent_id, model: id }, thread }: { message: ThreadMessage; thread: Thread }) {
  const { models } = useStore(useApp().catalog);
  const model = models.find((item) => item.id === id);
  const asked = thread.state.get().messages.find((message) => message.id === parent_id);
  const files = asked?.parts.filter((part) => part.type === "file" && unreadable(part, model)) ?? [];
  const names = files.map((part) => (part.type === "file" ? part.name : "")).join(", ");
  if (!model || !names) return null;
  return <p className={text.quiet}>{`${model.name} answered without ${names}, which it can’t read.`}</p>;
}

type ActionsProps = Pick<Props, "message" | "thread" | "last"> & { onEdit: () => void };

function AssistantActions({ message, thread, last, onEdit }: ActionsProps) {
  const { usage, run_id, model, duration_ms } = message;
  const speed = tokensPerSecond(message);
  const written = textOf(message.parts);
  const { models } = useStore(useApp().catalog);
  const fork = async () => {
    const session = await thread.fork(message.id);
    if (session) navigate(`/c/${session.id}`);
  };
  return (
    <footer className={styles.actions}>
      <VersionSwitcher message={message} thread={thread} />
      {written && <CopyButton text={() => written} />}
      {(isWhole(message) || wasLeftStopped(message, last)) && <RegenerateMenu message={message} thread={thread} />}
      {written && message.recovery?.state !== "pending" && (
        <IconButton name="Edit answer" icon="edit" onClick={onEdit} />
      )}
      <IconButton name="Branch in new chat" icon="fork" onClick={() => void fork()} />
      {run_id && (
        <Link className={iconButtonClass} href={`/runs/${run_id}`} aria-label="Flight recorder" title="Flight recorder">
          <Icon name="record" />
        </Link>
      )}
      <span className={styles.facts}>
        {isEdited(message) && <span title="The text was edited by hand">Edited</span>}
        {model && <span title={model}>{modelName(models, model)}</span>}
        {usage && (
          <span
            title={`${formatCount(usage.input_tokens)} input tokens, ${formatCount(usage.output_tokens)} output tokens`}
          >
            {formatCount(usage.output_tokens)} tokens
          </span>
        )}
        {duration_ms !== null && message.status !== "interrupted" && (
          <span title="Total time, including tools and approvals">{formatDuration(duration_ms)}</span>
        )}
        {speed !== null && (
          <span title="Output tokens per second, including the time to the first token">{formatSpeed(speed)}</span>
        )}
        {usage?.cost != null && <span>{formatCost(usage.cost)}</span>}
        <Timestamp iso={message.created_at} />
      </span>
    </footer>
  );
}

function Timestamp({ iso }: { iso: string }) {
  return (
    <time dateTime={iso} title={formatDateTime(iso)}>
      {formatTime(iso)}
    </time>
  );
}

function VersionSwitcher({ message, thread }: { message: ThreadMessage; thread: Thread }) {
  const { siblings } = message;
  const at = siblings.indexOf(message.id);
  if (siblings.length < 2 || at < 0) return null;
  const show = async (to: number, name: string) => {
    const id = siblings[to];
    if (id && (await thread.switchBranch(id))) requestAnimationFrame(() => focusVersionButton(id, name));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <span className={styles.versions} role="group" aria-label="Versions">
      <IconButton
        name="Previous version"
        icon="left"
        disabled={at === 0}
        onClick={() => void show(at - 1, "Previous version")}
      />
      <span>
        {at + 1}/{siblings.length}
      </span>
      <IconButton
        name="Next version"
        icon="right"
        disabled={at === siblings.length - 1}
        onClick={() => void show(at + 1, "Next version")}
      />
    </span>
  );
}

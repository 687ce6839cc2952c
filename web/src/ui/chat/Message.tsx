// One message of the thread: its parts, its notice and its actions.

import { memo, useState } from "react";
import { editDraft, NO_DRAFT } from "../../core/drafts.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { useApp } from "../context.ts";
import { formatCost, formatCount, formatDateTime, formatTime } from "../format.ts";
import { Link, navigate } from "../router.tsx";
import { CopyButton, IconButton, iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { PulseDot } from "../widgets/PulseDot.tsx";
import text from "../widgets/text.module.css";
import { Approval } from "./Approval.tsx";
import { focusMessageBox, focusVersionButton } from "./focus.ts";
import { InputForm } from "./InputForm.tsx";
import styles from "./Message.module.css";
import { MessageEditor } from "./MessageEditor.tsx";
import { MessageParts, textOf } from "./MessageParts.tsx";
import { Notice } from "./Notice.tsx";

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
  const { drafts } = useApp();
  const draftId = editDraft(message.id);
  // A change that was left unsent is shown again, without taking the focus.
  const [editing, setEditing] = useState<"restored" | "chosen" | null>(() =>
    drafts.read(draftId).text ? "restored" : null,
  );
  const files = message.parts.filter((part) => part.type === "file");
  if (editing) {
    return (
      <article className={styles.message} aria-label="You">
        <MessageEditor
          label="Edit message"
          text={textOf(message.parts)}
          hasFiles={files.length > 0}
          action="Send"
          draftId={draftId}
          autoFocus={editing === "chosen"}
          onClose={() => setEditing(null)}
          onDone={async (edited) => {
            if (!(await thread.edit(message.id, edited, files))) return;
            drafts.write(draftId, NO_DRAFT);
            setEditing(null);
            focusMessageBox();
          }}
        />
      </article>
    );
  }
  return (
    <article className={classNames(styles.message, styles.user)} aria-label="You" data-id={message.id}>
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
  const { api } = useApp();
  const growing = message.status === "streaming";
  return (
    <article
      className={classNames(styles.message, last && styles.last)}
      aria-label="Assistant"
      aria-busy={growing}
      data-id={message.id}
      data-status={message.status}
    >
      <MessageParts parts={message.parts} growing={growing} plain={false} />
      {message.approval && message.run_id && (
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
      {!growing && <Notice message={message} thread={thread} busy={busy} canContinue={canContinue} last={last} />}
      {!growing && <AssistantActions message={message} thread={thread} />}
    </article>
  );
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
          {retrying.message} Retrying… (attempt {retrying.attempt} of {retrying.attempts})
        </span>
      ) : (
        <span className={parts.length === 0 ? undefined : text.visuallyHidden}>Generating…</span>
      )}
    </p>
  );
}

function AssistantActions({ message, thread }: { message: ThreadMessage; thread: Thread }) {
  const { usage, run_id, model } = message;
  const fork = async () => {
    const session = await thread.fork(message.id);
    if (session) navigate(`/c/${session.id}`);
  };
  const regenerate = async () => {
    focusMessageBox(); // the button is about to go
    await thread.retry(message.id);
  };
  return (
    <footer className={styles.actions}>
      <VersionSwitcher message={message} thread={thread} />
      <CopyButton text={() => textOf(message.parts)} />
      {message.status === "complete" && message.reason === null && (
        <IconButton name="Regenerate" icon="retry" onClick={() => void regenerate()} />
      )}
      <IconButton name="Branch in new chat" icon="fork" onClick={() => void fork()} />
      {run_id && (
        <Link className={iconButtonClass} href={`/runs/${run_id}`} aria-label="Flight recorder" title="Flight recorder">
          <Icon name="record" />
        </Link>
      )}
      <span className={styles.facts}>
        {model && <span>{model}</span>}
        {usage && (
          <span
            title={`${formatCount(usage.input_tokens)} input tokens, ${formatCount(usage.output_tokens)} output tokens`}
          >
            {formatCount(usage.input_tokens + usage.output_tokens)} tokens
          </span>
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

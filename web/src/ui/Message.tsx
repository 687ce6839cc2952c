// One message of the thread: its parts, its notice, and what can be done with it.

import { memo, useState } from "react";
import type { Shown, Thread } from "../core/thread.ts";
import type { Part } from "../core/wire.ts";
import { Approval } from "./Approval.tsx";
import { EditBox } from "./EditBox.tsx";
import { count, exactly, money, when } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Notice } from "./Notice.tsx";
import { Prose } from "./Prose.tsx";
import { FileCard, ReasoningCard, RememberedCard, ToolCard } from "./parts.tsx";
import { Link, navigate } from "./router.tsx";
import { CopyButton, IconButton } from "./widgets.tsx";

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

export function PartView({ part, growing, plain }: { part: Part; growing: boolean; plain: boolean }) {
  switch (part.type) {
    case "text":
      return plain ? <p className="plain said">{part.text}</p> : <Prose text={part.text} growing={growing} />;
    case "reasoning":
      return <ReasoningCard part={part} growing={growing} />;
    case "tool":
      return <ToolCard part={part} />;
    case "file":
      return <FileCard part={part} />;
    case "remembered":
      return <RememberedCard part={part} />;
  }
}

export function Parts({ parts, growing, plain }: { parts: readonly Part[]; growing: boolean; plain: boolean }) {
  const last = parts.length - 1;
  return parts.map((part, n) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are only ever added at the end
    <PartView key={n} part={part} growing={growing && n === last} plain={plain} />
  ));
}

interface Props {
  message: Shown;
  thread: Thread;
  busy: boolean;
  canContinue: boolean;
  last: boolean;
}

export const MessageView = memo(function MessageView({ message, thread, busy, canContinue, last }: Props) {
  return message.role === "user" ? (
    <UserMessage message={message} thread={thread} />
  ) : (
    <Answer message={message} thread={thread} busy={busy} canContinue={canContinue} last={last} />
  );
});

function UserMessage({ message, thread }: { message: Shown; thread: Thread }) {
  const [editing, setEditing] = useState(false);
  const files = message.parts.filter((part) => part.type === "file");
  if (editing) {
    return (
      <article className="message user editing" aria-label="You">
        <EditBox
          label="Edit message"
          text={textOf(message.parts)}
          action="Send"
          onCancel={() => setEditing(false)}
          onDone={(text) => {
            setEditing(false);
            void thread.edit(message.id, text, files);
          }}
        />
      </article>
    );
  }
  return (
    <article className="message user" aria-label="You" data-id={message.id}>
      <div className="bubble">
        <Parts parts={message.parts} growing={false} plain />
      </div>
      <footer className="actions">
        <Branches message={message} thread={thread} />
        <time dateTime={message.created_at} title={exactly(message.created_at)}>
          {when(message.created_at)}
        </time>
        <CopyButton text={() => textOf(message.parts)} />
        <IconButton name="Edit" icon="edit" onClick={() => setEditing(true)} />
      </footer>
    </article>
  );
}

function Answer({ message, thread, busy, canContinue, last }: Props) {
  const growing = message.status === "streaming";
  return (
    <article
      className={`message assistant ${last ? "last" : ""}`}
      aria-label="Assistant"
      aria-busy={growing}
      data-id={message.id}
      data-status={message.status}
    >
      <Parts parts={message.parts} growing={growing} plain={false} />
      {message.approval && message.run_id && <Approval ask={message.approval} runId={message.run_id} thread={thread} />}
      {growing && !message.approval && <Working begun={message.parts.length > 0} />}
      {!growing && <Notice message={message} thread={thread} busy={busy} canContinue={canContinue} />}
      {!growing && <AnswerActions message={message} thread={thread} />}
    </article>
  );
}

function Working({ begun }: { begun: boolean }) {
  return (
    <p className={begun ? "working begun" : "working"}>
      <span className="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span className={begun ? "visually-hidden" : ""}>Working</span>
    </p>
  );
}

function AnswerActions({ message, thread }: { message: Shown; thread: Thread }) {
  const { usage } = message;
  const fork = async () => {
    const session = await thread.fork(message.id);
    if (session) navigate(`/c/${session.id}`);
  };
  return (
    <footer className="actions">
      <Branches message={message} thread={thread} />
      <CopyButton text={() => textOf(message.parts)} />
      {message.status === "complete" && (
        <IconButton name="Retry" icon="retry" onClick={() => void thread.retry(message.id)} />
      )}
      <IconButton name="Fork from here" icon="fork" onClick={() => void fork()} />
      {message.run_id && (
        <Link
          className="icon-button"
          href={`/runs/${message.run_id}`}
          aria-label="Flight recorder"
          title="Flight recorder"
        >
          <Icon name="record" />
        </Link>
      )}
      <span className="facts">
        {message.model && <span>{message.model}</span>}
        {usage && (
          <span title={`${count(usage.input_tokens)} tokens in, ${count(usage.output_tokens)} out`}>
            {count(usage.input_tokens + usage.output_tokens)} tokens
          </span>
        )}
        {usage?.cost != null && <span>{money(usage.cost)}</span>}
        <time dateTime={message.created_at} title={exactly(message.created_at)}>
          {when(message.created_at)}
        </time>
      </span>
    </footer>
  );
}

function Branches({ message, thread }: { message: Shown; thread: Thread }) {
  const { siblings } = message;
  const at = siblings.indexOf(message.id);
  if (siblings.length < 2 || at < 0) return null;
  const go = (to: number) => {
    const id = siblings[to];
    if (id) void thread.switchTo(id);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <span className="branches" role="group" aria-label="Branches">
      <IconButton name="Previous branch" icon="left" disabled={at === 0} onClick={() => go(at - 1)} />
      <span>
        {at + 1}/{siblings.length}
      </span>
      <IconButton name="Next branch" icon="right" disabled={at === siblings.length - 1} onClick={() => go(at + 1)} />
    </span>
  );
}

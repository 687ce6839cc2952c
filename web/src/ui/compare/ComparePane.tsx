import type { Pane } from "../../core/comparison.ts";
import type { Transcript } from "../../core/fold.ts";
import type { Decision, InputAnswer } from "../../core/types.ts";
import { questionOf } from "../../core/user-questions.ts";
import Approval from "../chat/Approval.tsx";
import InputForm from "../chat/InputForm.tsx";
import { MessageParts } from "../chat/MessageParts.tsx";
import UserQuestion from "../chat/UserQuestion.tsx";
import { formatCount, formatDuration } from "../format.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { NoticeBox } from "../widgets/NoticeBox.tsx";
import text from "../widgets/text.module.css";
import styles from "./Compare.module.css";

interface Props {
  position: number;
  pane: Pane;
  name: string;
  /** Whether the names are hidden until the vote; the speed would tell them. */
  hidden: boolean;
  best: boolean;
  /** null unless a vote can be cast for it. */
  onPickBest: (() => void) | null;
  onDecide: (approvalId: string, decision: Decision, option?: string) => Promise<unknown>;
  onAnswer: (requestId: string, answer: InputAnswer) => Promise<unknown>;
  onStop: () => void;
  onContinue: () => void;
}

/** One model's answer. */
export function ComparePane(props: Props) {
  const { position, pane, name, hidden, best, onPickBest, onDecide, onAnswer, onStop, onContinue } = props;
  const { transcript } = pane;
  const growing = transcript.status === "streaming";
  const question = transcript.approval && questionOf(transcript.approval);
  return (
    <section
      className={classNames(styles.pane, best && styles.best)}
      aria-label={`${position}: ${name}`}
      aria-busy={growing}
    >
      <header>
        <h2>{name}</h2>
        {!hidden && <span className={text.quiet}>{speed(pane)}</span>}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <div className={styles.body} tabIndex={0}>
        <MessageParts parts={transcript.parts} growing={growing} plain={false} />
        {question && (
          <UserQuestion
            question={question}
            onAnswer={(answer) => onAnswer(transcript.approval?.approval_id ?? "", answer)}
          />
        )}
        {!question && transcript.approval && <Approval request={transcript.approval} onDecide={onDecide} />}
        {transcript.input && <InputForm request={transcript.input} onAnswer={onAnswer} />}
        <PaneNotice transcript={transcript} />
      </div>
      <footer className={text.row}>
        {growing ? (
          <Button small onClick={onStop} disabled={pane.runId === null}>
            Stop
          </Button>
        ) : (
          <Button small onClick={onContinue}>
            Open in chat
          </Button>
        )}
        {onPickBest && (
          <Button small variant="primary" onClick={onPickBest}>
            Pick as best
          </Button>
        )}
        {best && <strong>Your pick</strong>}
      </footer>
    </section>
  );
}

function PaneNotice({ transcript: { status, reason, error } }: { transcript: Transcript }) {
  if (status === "cancelled") {
    return <NoticeBox kind="neutral" text={reason === "disconnected" ? "Stopped: the page was closed" : "Stopped"} />;
  }
  if (status === "failed") return <NoticeBox kind="error" text={error?.message ?? "Something went wrong"} />;
  if (status === "interrupted") return <NoticeBox kind="warning" text="Interrupted" />;
  return null;
}

function speed({ firstTokenMs, endMs, transcript, deltas }: Pane): string {
  if (firstTokenMs === null) return "";
  const tokens = transcript.usage?.output_tokens ?? deltas;
  const seconds = endMs === null ? 0 : (endMs - firstTokenMs) / 1000;
  const rate = seconds > 0 ? ` · ${formatCount(Math.round(tokens / seconds))} tokens/s` : "";
  return `First token ${formatDuration(firstTokenMs)}${rate}`;
}

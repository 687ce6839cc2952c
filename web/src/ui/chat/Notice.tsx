// Shows how a message ended. It is derived from the message, so there is never more than one.

import { escapeInvisible } from "../../core/invisible-characters.ts";
import { unansweredCalls } from "../../core/late-grants.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { summarizeArguments } from "../../core/tool-arguments.ts";
import type { ToolPart } from "../../core/types.ts";
import { Button } from "../widgets/buttons.tsx";
import { NoticeBox, type NoticeKind } from "../widgets/NoticeBox.tsx";
import { focusMessageBox } from "./focus.ts";

interface Props {
  message: ThreadMessage;
  thread: Thread;
  busy: boolean;
  canContinue: boolean;
  /** Whether it is the last message: continuing an older one would hide those after it. */
  last: boolean;
}

const CUT_SHORT: Readonly<Record<string, string>> = {
  length: "The answer reached the model’s output limit",
  content_filter: "The provider’s content filter ended this answer",
};

const RECOVERY = {
  recovered: ": the output so far was recovered",
  none: ": the output could not be recovered",
  pending: ": recovering the output…",
} as const;

function describeUnanswered(calls: readonly ToolPart[]): string {
  const names = calls.map(({ name, args }) => escapeInvisible(`${name} ${summarizeArguments(args)}`.trim()));
  return `Not run, because nobody answered in time: ${names.join(", ")}`;
}

function describe(message: ThreadMessage, unanswered: readonly ToolPart[]): { kind: NoticeKind; text: string } | null {
  const { status, recovery, error, reason, parts } = message;
  if (status === "interrupted" || recovery?.state === "pending") {
    const partly = recovery?.state === "none" && parts.length > 0;
    const recovered = partly ? ": part of the output could not be recovered" : recovery ? RECOVERY[recovery.state] : "";
    return { kind: "warning", text: `Interrupted by a server restart${recovered}` };
  }
  if (status === "cancelled") {
    return { kind: "neutral", text: reason === "disconnected" ? "Stopped: the page was closed" : "Stopped" };
  }
  if (status === "failed") {
    return { kind: "error", text: error?.message ?? "Something went wrong while generating this answer" };
  }
  if (status === "complete" && reason !== null) {
    return { kind: "warning", text: CUT_SHORT[reason] ?? "The provider ended this answer early" };
  }
  return unanswered.length ? { kind: "warning", text: describeUnanswered(unanswered) } : null;
}

export function Notice({ message, thread, busy, canContinue, last }: Props) {
  const unanswered = last && canContinue && message.run_id ? unansweredCalls(message.parts) : [];
  const notice = describe(message, unanswered);
  if (!notice) return null;
  const complete = message.status === "complete" && message.reason === null;
  const { run_id: run, recovery } = message;
  const act = (work: () => Promise<unknown>) => {
    focusMessageBox(); // the button is about to go
    void work();
  };
  return (
    <NoticeBox kind={notice.kind} text={notice.text}>
      {run && unanswered.length > 0 && (
        <Button
          variant="primary"
          disabled={busy}
          onClick={() =>
            act(() =>
              thread.allowAndContinue(
                run,
                unanswered.map(({ call_id }) => call_id),
              ),
            )
          }
        >
          Allow and continue
        </Button>
      )}
      {run && last && canContinue && !complete && recovery?.state !== "pending" && (
        <Button disabled={busy} onClick={() => act(() => thread.continueRun(run))}>
          Continue
        </Button>
      )}
      {!complete && <Button onClick={() => act(() => thread.retry(message.id))}>Regenerate</Button>}
      {run && recovery && recovery.state !== "recovered" && (
        <Button onClick={() => void thread.recover(run)}>Retry recovery</Button>
      )}
    </NoticeBox>
  );
}

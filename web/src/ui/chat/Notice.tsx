// Shows how a message ended. It is derived from the message, so there is never more than one. The text of a failure is
// the server's: of the model from `models.upstream_errors`, of limits and storage from `engine.stop_reasons`, of anything
// else from `engine.executor`.

import { isWhole, wasLeftStopped } from "../../core/answer-ends.ts";
import { leftOut, MODEL_DEFAULT, rejectedSetting, type SettingName } from "../../core/chat-settings.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { unansweredCalls } from "../../core/late-approvals.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { summarizeArguments } from "../../core/tool-arguments.ts";
import type { ToolPart } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { chatSettingsOpen } from "../dialogs.ts";
import { Link } from "../router.tsx";
import { Button, buttonClass } from "../widgets/buttons.tsx";
import { NoticeBox, type NoticeKind } from "../widgets/NoticeBox.tsx";
import text from "../widgets/text.module.css";
import { focusMessageBox } from "./focus.ts";
import { OtherModels } from "./RegenerateMenu.tsx";
import { compactContext, regenerate } from "./turn-actions.ts";

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
    if (message.run_id === null) {
      return { kind: "warning", text: "Incomplete answer" };
    }
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
  if (!isWhole(message) && reason !== null) {
    return { kind: "warning", text: CUT_SHORT[reason] ?? "The provider ended this answer early" };
  }
  return unanswered.length ? { kind: "warning", text: describeUnanswered(unanswered) } : null;
}

/** Failures that the settings of the models can mend. */
const MODEL_PROBLEMS: ReadonlySet<string> = new Set(["auth", "bad-request", "protocol", "unavailable"]);

/** Whether the model said nothing at all, so that there is nothing to continue. */
const isEmpty = ({ parts }: ThreadMessage): boolean => parts.every((part) => part.type === "remembered");

/** What to do about a setting that the model rejected. */
function RejectedSetting({ name, message, thread }: { name: SettingName; message: ThreadMessage; thread: Thread }) {
  const app = useApp();
  const { chatDefaults } = useStore(app.catalog);
  const { session } = useStore(thread.state);
  const value = session?.[name] ?? chatDefaults?.[name];
  const tryWithout = async () => {
    focusMessageBox(); // the button is about to go
    if (await thread.patch(leftOut(name, chatDefaults))) await regenerate(app, thread, message.id);
  };
  return (
    <>
      {value != null && value !== MODEL_DEFAULT && (
        <Button variant="primary" onClick={() => void tryWithout()}>
          Try without it
        </Button>
      )}
      <Button onClick={() => chatSettingsOpen.set(true)}>Open chat settings</Button>
    </>
  );
}

export default function Notice({ message, thread, busy, canContinue, last }: Props) {
  const app = useApp();
  const unanswered = last && canContinue && message.run_id ? unansweredCalls(message.parts) : [];
  const notice = describe(message, unanswered);
  if (!notice) return null;
  const complete = isWhole(message) || wasLeftStopped(message, last); // its actions are below it
  const { run_id: run, recovery, error } = message;
  const failedEmpty = message.status === "failed" && isEmpty(message);
  const continuable = run !== null && canContinue && !complete && recovery?.state !== "pending" && !failedEmpty;
  const rejected = rejectedSetting(error?.code);
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
      {rejected && last && <RejectedSetting name={rejected} message={message} thread={thread} />}
      {continuable && last && (
        <Button disabled={busy} onClick={() => act(() => thread.continueRun(run))}>
          Continue
        </Button>
      )}
      {!complete && (
        <Button onClick={() => act(() => regenerate(app, thread, message.id))}>
          {failedEmpty ? "Try again" : "Regenerate"}
        </Button>
      )}
      {!complete && <OtherModels message={message} thread={thread} label="Another model" />}
      {error && MODEL_PROBLEMS.has(error.code) && failedEmpty && (
        <Link className={buttonClass()} href="/settings#models">
          Open model settings
        </Link>
      )}
      {error?.code === "context-length" && last && (
        <Button onClick={() => act(() => compactContext(app, thread))}>Summarize older messages</Button>
      )}
      {run && recovery && recovery.state !== "recovered" && (
        <Button onClick={() => void thread.recover(run)}>Retry recovery</Button>
      )}
      {continuable && !last && <span className={text.quiet}>Can’t continue: there are newer messages.</span>}
    </NoticeBox>
  );
}

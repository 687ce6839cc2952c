// How a message's status is shown. It is derived, so there is never more than one.

import type { Shown, Thread } from "../core/thread.ts";

interface Props {
  message: Shown;
  thread: Thread;
  busy: boolean;
  canContinue: boolean;
}

function wording(message: Shown): { kind: string; text: string } | null {
  const { status, recovery, error, reason } = message;
  if (recovery?.state === "pending") {
    return { kind: "warn", text: "Interrupted. What had been written is still being recovered; it will appear here." };
  }
  if (status === "cancelled") {
    return { kind: "calm", text: reason === "disconnected" ? "Stopped: its page was closed." : "Stopped." };
  }
  if (status === "failed") return { kind: "bad", text: error?.message ?? "This answer failed." };
  if (status === "interrupted") {
    const found = {
      recovered: " What had been written was recovered.",
      none: " No output was recovered.",
      pending: "",
    };
    return {
      kind: "warn",
      text: `Interrupted: the server stopped in the middle.${recovery ? found[recovery.state] : ""}`,
    };
  }
  return null;
}

export function Notice({ message, thread, busy, canContinue }: Props) {
  const told = wording(message);
  if (!told) return null;
  const { run_id: run, recovery } = message;
  return (
    <div className={`notice ${told.kind}`} role="note" aria-label="Notice">
      <p>{told.text}</p>
      <div className="row">
        {run && canContinue && recovery?.state !== "pending" && (
          <button type="button" className="button" disabled={busy} onClick={() => void thread.continueRun(run)}>
            Continue
          </button>
        )}
        <button type="button" className="button" onClick={() => void thread.retry(message.id)}>
          Retry
        </button>
        {run && recovery && recovery.state !== "recovered" && (
          <button type="button" className="button" onClick={() => void thread.recover(run)}>
            Look again
          </button>
        )}
      </div>
    </div>
  );
}

// Asks the user to allow a tool call. The first decision wins, wherever it is made (`engine.transactions.approvals`).

import { useEffect, useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { toolLabel } from "../../core/tool-results.ts";
import type { ApprovalOption, ApprovalRequest, Decision } from "../../core/types.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Advice } from "../widgets/InlineCode.tsx";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Approval.module.css";
import CallDetails from "./CallDetails.tsx";
import { focusMessageBox } from "./focus.ts";

/** The reason of most requests, which the question says already; another one may follow it. */
const USUAL_REASON = "This tool needs your approval.";

/** The tool whose file may not be there yet. */
const CREATES_FILES = "write_file";

const CHOICES: readonly ApprovalOption[] = [
  { id: "once", decision: "once", name: "Allow once" },
  { id: "session", decision: "session", name: "Allow for this chat" },
  { id: "always", decision: "always", name: "Always allow" },
  { id: "deny", decision: "deny", name: "Deny" },
];

const defaultOptions = (always: boolean) => CHOICES.filter(({ decision }) => decision !== "always" || always);

const TICK_MS = 500;
const URGENT_SECONDS = 10;

/** How long the agent waits for an answer before it denies by itself, by the server's clock. */
function Countdown({ until, now }: { until: number; now: () => number }) {
  const [left, setLeft] = useState(() => until - now());
  const [whole] = useState(left);
  useEffect(() => {
    const timer = setInterval(() => setLeft(until - now()), TICK_MS);
    return () => clearInterval(timer);
  }, [now, until]);
  const seconds = Math.max(0, Math.ceil(left / 1000));
  const urgent = seconds <= URGENT_SECONDS;
  return (
    <div className={classNames(styles.countdown, urgent && styles.urgent)}>
      <span role="timer">
        {seconds ? `${seconds} s left to answer, then it is denied` : "No answer in time: denied"}
      </span>
      <progress max={Math.max(1, whole)} value={Math.max(0, left)} aria-hidden="true" />
      <span className={text.visuallyHidden} role="status">
        {urgent && seconds > 0 ? `Less than ${URGENT_SECONDS} seconds left to answer` : ""}
      </span>
    </div>
  );
}

interface Props {
  request: ApprovalRequest;
  /** Returns something falsy if the decision could not be sent. */
  onDecide: (approvalId: string, decision: Decision, option?: string) => Promise<unknown>;
  /** The server's time, in milliseconds since the epoch. */
  now?: () => number;
}

export default function Approval({ request, onDecide, now = Date.now }: Props) {
  const [sending, setSending] = useState(false);
  const reason = request.reason?.replace(USUAL_REASON, "").trim();
  const decide = async ({ decision, name }: ApprovalOption) => {
    setSending(true);
    focusMessageBox(); // the button is about to go
    if (!(await onDecide(request.approval_id, decision, request.options ? name : undefined))) setSending(false);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <section className={classNames(styles.approval, text.block)} role="group" aria-label="Approval">
      <p className={styles.question}>
        <Icon name="tool" />
        <span>
          Allow <strong>{toolLabel(escapeInvisible(request.name))}</strong> to run?
        </span>
      </p>
      {reason && (
        <p>
          <Advice text={escapeInvisible(reason)} />
        </p>
      )}
      <CallDetails args={request.args} linked={request.name !== CREATES_FILES} />
      {request.expires_at !== null && <Countdown until={request.expires_at} now={now} />}
      <div className={text.row}>
        {(request.options ?? defaultOptions(request.always)).map((option) => (
          <Button
            key={option.id}
            variant={option.decision === "once" ? "primary" : undefined}
            disabled={sending}
            onClick={() => void decide(option)}
          >
            {escapeInvisible(option.name)}
          </Button>
        ))}
      </div>
    </section>
  );
}

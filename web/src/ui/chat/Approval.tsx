// Asks the user to allow a tool call. The first decision wins, wherever it is made.

import { useEffect, useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { toolLabel } from "../../core/tool-results.ts";
import type { ApprovalOption, ApprovalRequest, Decision } from "../../core/types.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Approval.module.css";
import { ToolArguments } from "./ToolArguments.tsx";

/** The reason of most requests, which the question says already. */
const USUAL_REASON = "This tool needs your approval.";

const CHOICES: readonly ApprovalOption[] = [
  { id: "once", decision: "once", name: "Allow once" },
  { id: "session", decision: "session", name: "Allow for this chat" },
  { id: "always", decision: "always", name: "Always allow" },
  { id: "deny", decision: "deny", name: "Deny" },
];

const defaultOptions = (always: boolean) => CHOICES.filter(({ decision }) => decision !== "always" || always);

/** How long the agent waits for an answer before it denies by itself. */
function Countdown({ until }: { until: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return (
    <p className={text.quiet}>{seconds ? `Denied in ${seconds} s without an answer` : "Denied: no answer in time"}</p>
  );
}

interface Props {
  request: ApprovalRequest;
  /** Returns something falsy if the decision could not be sent. */
  onDecide: (approvalId: string, decision: Decision, option?: string) => Promise<unknown>;
}

export function Approval({ request, onDecide }: Props) {
  const [sending, setSending] = useState(false);
  const decide = async ({ decision, name }: ApprovalOption) => {
    setSending(true);
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
      {request.reason && request.reason !== USUAL_REASON && <p>{escapeInvisible(request.reason)}</p>}
      <ToolArguments args={request.args} />
      {request.expires_at !== null && <Countdown until={request.expires_at} />}
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

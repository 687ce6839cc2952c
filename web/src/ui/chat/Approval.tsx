// Asks the user to allow a tool call. The first decision wins, wherever it is made.

import { useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import type { ApprovalRequest, Decision } from "../../core/types.ts";
import { formatJson } from "../format.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Approval.module.css";

const CHOICES: readonly (readonly [Decision, string])[] = [
  ["once", "Allow once"],
  ["session", "Allow for this chat"],
  ["always", "Always allow"],
  ["deny", "Deny"],
];

interface Props {
  request: ApprovalRequest;
  /** Returns something falsy if the decision could not be sent. */
  onDecide: (approvalId: string, decision: Decision) => Promise<unknown>;
}

export function Approval({ request, onDecide }: Props) {
  const [sending, setSending] = useState(false);
  const decide = async (decision: Decision) => {
    setSending(true);
    if (!(await onDecide(request.approval_id, decision))) setSending(false);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <section className={classNames(styles.approval, text.block)} role="group" aria-label="Approval">
      <p className={styles.question}>
        <Icon name="tool" />
        <span>
          Allow <strong>{escapeInvisible(request.name)}</strong> to run?
        </span>
      </p>
      {request.reason && <p>{escapeInvisible(request.reason)}</p>}
      {request.args !== null && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <pre tabIndex={0}>{formatJson(request.args)}</pre>
      )}
      <div className={text.row}>
        {CHOICES.filter(([decision]) => decision !== "always" || request.always).map(([decision, name]) => (
          <Button
            key={decision}
            variant={decision === "once" ? "primary" : undefined}
            disabled={sending}
            onClick={() => void decide(decision)}
          >
            {name}
          </Button>
        ))}
      </div>
    </section>
  );
}

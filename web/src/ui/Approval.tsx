// A tool that asks. The first answer counts, wherever it is given.

import { useState } from "react";
import type { Thread } from "../core/thread.ts";
import type { ApprovalRequest, Decision } from "../core/wire.ts";
import { pretty } from "./format.ts";
import { Icon } from "./icons.tsx";

const CHOICES: readonly (readonly [Decision, string])[] = [
  ["once", "Allow once"],
  ["session", "Allow in this chat"],
  ["always", "Always allow"],
  ["deny", "Deny"],
];

export function Approval({ ask, runId, thread }: { ask: ApprovalRequest; runId: string; thread: Thread }) {
  const [answered, setAnswered] = useState(false);
  const decide = async (decision: Decision) => {
    setAnswered(true);
    if (!(await thread.decide(runId, ask.approval_id, decision))) setAnswered(false);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <section className="card approval" role="group" aria-label="Approval">
      <p className="approval-head">
        <Icon name="tool" />
        <span>
          <strong>{ask.name}</strong> asks for your permission.
        </span>
      </p>
      {ask.reason && <p>{ask.reason}</p>}
      {ask.args !== null && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
        <pre tabIndex={0}>{pretty(ask.args)}</pre>
      )}
      <div className="row">
        {CHOICES.map(([decision, name]) => (
          <button
            key={decision}
            type="button"
            className={decision === "once" ? "button primary" : "button"}
            disabled={answered}
            onClick={() => void decide(decision)}
          >
            {name}
          </button>
        ))}
      </div>
    </section>
  );
}

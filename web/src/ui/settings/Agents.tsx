// The agents: those of Holdfast itself, programs that were found or configured, and programs that were added here.

import { type ReactNode, useEffect, useState } from "react";
import { AGENT_DESCRIPTIONS, agentTitle } from "../../core/agent-descriptions.ts";
import { errorMessage } from "../../core/api.ts";
import type { AgentTestResponse } from "../../core/api-types.ts";
import { joinCommand } from "../../core/command-line.ts";
import type { Agent } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatDuration } from "../format.ts";
import { Link } from "../router.tsx";
import { Button } from "../widgets/buttons.tsx";
import { InlineCode } from "../widgets/InlineCode.tsx";
import { Item, ItemAction, ItemList, type ItemStatus } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { AgentDialog } from "./AgentDialog.tsx";

export function Agents({ passwordSet }: { passwordSet: boolean }) {
  const { agents } = useStore(useApp().catalog);
  const [adding, setAdding] = useState(false);
  const shown = agents.toSorted((a, b) => Number(b.available) - Number(a.available));
  return (
    <>
      <p className={text.quiet}>
        Connect agents that support the Agent Client Protocol (ACP). They use their own models, tools and logins, and
        run with the server’s user account, without a sandbox. To connect a Hermes gateway, edit{" "}
        <code>holdfast.toml</code>.
      </p>
      <ItemList label="Agents">
        {shown.map((agent) => (
          <AgentItem key={agent.name} agent={agent} passwordSet={passwordSet} />
        ))}
      </ItemList>
      <div className={text.row}>
        <Button disabled={!passwordSet} onClick={() => setAdding(true)}>
          Add agent
        </Button>
        {!passwordSet && (
          <span className={text.quiet}>
            Adding an agent needs a <Link href="/settings#access">password</Link>.
          </span>
        )}
      </div>
      {adding && <AgentDialog onClose={() => setAdding(false)} />}
    </>
  );
}

type TestState = { readonly since: number } | { readonly result: AgentTestResponse } | { readonly problem: string };

function AgentItem({ agent, passwordSet }: { agent: Agent; passwordSet: boolean }) {
  const app = useApp();
  const { name, is_program, available, test_failed, url, editable, npx_command } = agent;
  const { command = [], env = [] } = agent;
  const [test, setTest] = useState<TestState | null>(null);
  const [editing, setEditing] = useState<Agent | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const run = async () => {
    setTest({ since: Date.now() });
    try {
      setTest({ result: await app.api.testAgent(name) });
    } catch (error) {
      setTest({ problem: errorMessage(error) });
    }
    await app.loadCatalog(); // whether it is available depends on the result
  };
  const remove = async () => {
    const detail = "Its chats are kept. To continue them, choose another agent.";
    if (!(await askConfirmation(`Remove ${name}?`, detail, "Remove")).confirmed) return;
    try {
      await app.api.call("DELETE", `/api/agents/${name}`);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    await app.loadCatalog();
  };
  const resumes = agent.can_continue ? "Resumes after a restart" : "Starts over after a restart";
  return (
    <Item
      status={statusOf(agent)}
      title={agentTitle(name)}
      facts={[
        is_program ? (url ?? joinCommand(command)) : [AGENT_DESCRIPTIONS[name] ?? "Built-in", resumes].join(" · "),
        agent.cwd && `in ${agent.cwd}`,
        env.length > 0 && `Variables: ${env.join(", ")}`,
      ]}
      details={
        <>
          {!(test_failed && test) && <Reason reason={agent.reason} />}
          {npx_command && (
            <p className={text.quiet}>
              Without installing it: <code>{joinCommand(npx_command)}</code>
            </p>
          )}
          {problem && (
            <p className={text.error} role="alert">
              <InlineCode text={problem} />
            </p>
          )}
          {test && <TestStatus name={name} state={test} />}
        </>
      }
    >
      {npx_command && (
        <ItemAction
          name="Use npx"
          of={name}
          disabled={!passwordSet}
          onClick={() => setEditing({ ...agent, command: npx_command })}
        />
      )}
      {is_program && (available || test_failed) && (
        <ItemAction name="Test" of={name} disabled={test !== null && "since" in test} onClick={() => void run()} />
      )}
      {editable && <ItemAction name="Edit" of={name} disabled={!passwordSet} onClick={() => setEditing(agent)} />}
      {editable && <ItemAction name="Remove" of={name} onClick={() => void remove()} />}
      {editing && <AgentDialog agent={editing} onClose={() => setEditing(null)} />}
    </Item>
  );
}

function statusOf({ available, test_failed, url }: Agent): ItemStatus {
  if (available) return { text: "Available", kind: "good" };
  if (test_failed) return { text: "Test failed", kind: "bad" };
  return { text: url ? "Unavailable" : "Not installed", kind: "neutral" };
}

function Reason({ reason }: { reason: string | null }) {
  if (!reason) return null;
  return (
    <p className={text.quiet}>
      <InlineCode text={reason} />
    </p>
  );
}

function TestStatus({ name, state }: { name: string; state: TestState }) {
  return (
    <div role="status">
      {"since" in state && <TestProgress name={name} since={state.since} />}
      {"problem" in state && (
        <p className={text.error}>
          <InlineCode text={state.problem} />
        </p>
      )}
      {"result" in state && <TestResult result={state.result} />}
    </div>
  );
}

function TestProgress({ name, since }: { name: string; since: number }) {
  const [now, setNow] = useState(since);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.round((now - since) / 1000);
  return (
    <p className={text.quiet}>
      Starting {name}… <span aria-hidden="true">{seconds > 0 && `${seconds} s`}</span>
    </p>
  );
}

function TestResult({ result }: { result: AgentTestResponse }) {
  const { ok, reason, program, version, capabilities, login, login_required, session_problem, took_ms } = result;
  if (!ok)
    return (
      <p className={text.error}>
        <InlineCode text={reason ?? "It did not start."} />
      </p>
    );
  const who = [program, version].filter(Boolean).join(" ") || "It";
  return (
    <>
      <Line>
        {who} answered in {formatDuration(took_ms)}.
      </Line>
      {capabilities.length > 0 && <Line>Supports: {capabilities.join(", ")}.</Line>}
      {login_required && (
        <p className={text.error}>
          <InlineCode text={`Login required. ${session_problem ?? ""}`} />
        </p>
      )}
      {!login_required && session_problem && (
        <p className={text.error}>
          <InlineCode text={session_problem} />
        </p>
      )}
      {login.length > 0 && <Line>Ways to log in: {login.join(", ")}.</Line>}
    </>
  );
}

function Line({ children }: { children: ReactNode }) {
  return <p className={text.quiet}>{children}</p>;
}

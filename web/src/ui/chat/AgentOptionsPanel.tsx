// What an agent program offers in a chat: where it works, its mode, its model and whatever else.

import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { InlineCode } from "../widgets/InlineCode.tsx";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./AgentOptions.module.css";
import type { AgentOptionsProps } from "./AgentOptions.tsx";
import { type AgentOption, type OptionValue, useDirectories } from "./use-agent-options.ts";

export default function AgentOptionsPanel(props: AgentOptionsProps & { onClose: () => void; onResize: () => void }) {
  const { agent, cwd, options, onChooseDirectory, onChooseOption, reload, onClose, onResize } = props;
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(onResize);
    if (content.current) observer.observe(content.current);
    return () => observer.disconnect();
  }, [onResize]);
  const choose = async (work: () => Promise<string | null>): Promise<string | null> => {
    setBusy(true);
    const failed = await work();
    setBusy(false);
    if (failed === null) await reload();
    return failed && withoutField(failed);
  };
  return (
    <div className={styles.panel} ref={content} aria-busy={busy}>
      <DirectoryField cwd={cwd} onChoose={(path) => choose(() => onChooseDirectory(path))} />
      {options.map((option) => (
        <OptionField
          key={option.id}
          option={option}
          onChoose={(value) => void choose(() => onChooseOption(option.id, value)).then(setProblem)}
        />
      ))}
      {options.length === 0 && <UnknownOptions agent={agent} reload={reload} />}
      {problem && <Problem text={problem} />}
      <div className={styles.buttons}>
        <Button small onClick={onClose}>
          Done
        </Button>
      </div>
    </div>
  );
}

/** The server names the field of a request first. */
function withoutField(problem: string): string {
  const said = problem.replace(/^(cwd|path|agent_options): /, "");
  return said.charAt(0).toUpperCase() + said.slice(1);
}

function Problem({ text: content }: { text: string }) {
  return (
    <p className={classNames(text.error, styles.hint)} role="alert">
      <InlineCode text={content} />
    </p>
  );
}

const MAX_RECENT = 4;

interface DirectoryFieldProps {
  cwd: string | null;
  /** Returns why it could not be chosen. */
  onChoose: (path: string | null) => Promise<string | null>;
}

function DirectoryField({ cwd, onChoose }: DirectoryFieldProps) {
  const directories = useDirectories(true);
  const [path, setPath] = useState(cwd ?? "");
  const input = useRef<HTMLInputElement>(null);
  const hint = useId();
  useEffect(() => setPath(cwd ?? ""), [cwd]);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) input.current?.focus(); // elsewhere that opens a keyboard
  }, []);
  const [problem, setProblem] = useState<string | null>(null);
  const choose = (chosen: string | null) => void onChoose(chosen).then(setProblem);
  const submit = () => choose(path.trim() || null);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
    event.preventDefault(); // the message box is a form around this one
    submit();
  };
  const allowed = directories?.allowed ?? [];
  if (directories && !allowed.length) {
    return (
      <p className={text.quiet}>Works in a separate folder for each chat. This server does not allow choosing one.</p>
    );
  }
  const recent = (directories?.recent ?? []).filter((item) => item !== cwd).slice(0, MAX_RECENT);
  return (
    <div className={styles.directory}>
      <label>
        Working directory
        <input
          ref={input}
          className={forms.field}
          value={path}
          placeholder="Default: a separate folder for each chat"
          aria-describedby={hint}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={4000}
          onChange={(event) => setPath(event.target.value)}
          onKeyDown={onKeyDown}
        />
      </label>
      <Button small onClick={submit} disabled={path.trim() === (cwd ?? "")}>
        Use
      </Button>
      {cwd !== null && (
        <Button small onClick={() => choose(null)}>
          Clear
        </Button>
      )}
      {problem && <Problem text={problem} />}
      <p id={hint} className={classNames(text.quiet, styles.hint)}>
        {allowed.length > 0 && `A folder inside ${allowed.join(" or ")} on the server.`} The agent can change the files
        in it.
      </p>
      {recent.length > 0 && (
        <ul className={styles.recent} aria-label="Recent directories">
          {recent.map((item) => (
            <li key={item}>
              <button type="button" title={item} onClick={() => choose(item)}>
                <Icon name="folder" />
                <span className={text.ellipsis}>{item}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function OptionField({ option, onChoose }: { option: AgentOption; onChoose: (value: OptionValue) => void }) {
  const { name, value, choices } = option;
  const changed = value !== option.default;
  const about = choices.find(({ id }) => id === value)?.description;
  const reset = changed && (
    <Button small aria-label={`Reset ${name}`} onClick={() => onChoose(option.default)}>
      Reset
    </Button>
  );
  if (typeof value === "boolean") {
    return (
      <div className={styles.option}>
        <label className={forms.checkbox}>
          <input type="checkbox" checked={value} onChange={(event) => onChoose(event.target.checked)} />
          {name}
        </label>
        {reset}
      </div>
    );
  }
  return (
    <div className={styles.option}>
      <label>
        {name}
        <select
          className={classNames(forms.field, forms.small)}
          value={value}
          onChange={(event) => onChoose(event.target.value)}
        >
          {!choices.some(({ id }) => id === value) && <option value={value}>{value || "Choose…"}</option>}
          {choices.map((choice) => (
            <option key={choice.id} value={choice.id}>
              {choice.name}
              {choice.id === option.default ? " (default)" : ""}
            </option>
          ))}
        </select>
      </label>
      {reset}
      {about && <p className={classNames(text.quiet, styles.hint)}>{about}</p>}
    </div>
  );
}

/** A program says what it offers when it opens a session, so before its first one nothing is known. */
function UnknownOptions({ agent, reload }: { agent: string; reload: () => Promise<void> }) {
  const { api } = useApp();
  const [state, setState] = useState<string | null>(null);
  const [asking, setAsking] = useState(false);
  const ask = async () => {
    setAsking(true);
    setState(`Starting ${agent}…`);
    try {
      const { ok, reason, session_problem } = await api.testAgent(agent);
      setState((ok ? session_problem : reason) ?? "This agent has no options.");
    } catch (error) {
      setState(errorMessage(error));
    }
    setAsking(false);
    await reload();
  };
  return (
    <div className={styles.option}>
      <p className={classNames(text.quiet, styles.hint)} role="status">
        <InlineCode text={state ?? "This agent has no options yet."} />
      </p>
      {state === null && (
        <Button small disabled={asking} onClick={() => void ask()}>
          Load options
        </Button>
      )}
    </div>
  );
}

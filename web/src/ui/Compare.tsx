// Two to six models on one prompt, side by side.

import { useEffect, useMemo, useState } from "react";
import { type Choice, Compare as Comparison, type Pane } from "../core/compare.ts";
import { useApp, useStore } from "./context.ts";
import { count, duration } from "./format.ts";
import { Parts } from "./Message.tsx";
import { navigate } from "./router.tsx";
import { ScreenHead } from "./ScreenHead.tsx";
import { IconButton } from "./widgets.tsx";

const MOST = 6;
const LETTERS = "ABCDEF";

export default function Compare() {
  const app = useApp();
  const comparison = useMemo(() => new Comparison(app.env, app.api), [app]);
  const state = useStore(comparison.state);
  const options = useOptions();
  const [text, setText] = useState("");
  const [picked, setChosen] = useState<readonly string[] | null>(null);
  const { defaultModel } = useStore(app.catalogue);
  const chosen = picked ?? ["", otherThan(options, defaultModel)];
  const [blind, setBlind] = useState(false);
  const [vote, setVote] = useState<number | null>(null);
  useEffect(() => {
    document.title = "Compare · Holdfast";
    return () => comparison.leave();
  }, [comparison]);

  const start = () => {
    if (!text.trim() || state.on) return;
    setVote(null);
    const wanted = chosen.map((id) => options.find((option) => option.id === id)?.choice ?? {});
    void comparison.start(text, blind ? shuffled(wanted) : wanted);
  };
  const change = (at: number, id: string) => setChosen(chosen.map((old, n) => (n === at ? id : old)));
  return (
    <div className="screen wide">
      <ScreenHead title="Compare">
        {state.on && (
          <button type="button" className="button" onClick={() => comparison.stopAll()}>
            Stop all
          </button>
        )}
      </ScreenHead>
      <form
        className="compare-form"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <textarea
          aria-label="Prompt"
          rows={2}
          placeholder="One prompt for all of them"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              start();
            }
          }}
        />
        <div className="compare-bar">
          {chosen.map((id, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: panes are places
            <span key={n} className="chosen">
              <select aria-label={`Model ${n + 1}`} value={id} onChange={(event) => change(n, event.target.value)}>
                {options.map((option) => (
                  <option key={option.id} value={option.id}>
                    {option.name}
                  </option>
                ))}
              </select>
              {chosen.length > 2 && (
                <IconButton
                  name={`Remove model ${n + 1}`}
                  icon="close"
                  onClick={() => setChosen(chosen.filter((_, other) => other !== n))}
                />
              )}
            </span>
          ))}
          <IconButton
            name="Add a model"
            icon="plus"
            disabled={chosen.length >= MOST}
            onClick={() => setChosen([...chosen, options[chosen.length % options.length]?.id ?? ""])}
          />
          <label className="check">
            <input type="checkbox" checked={blind} onChange={(event) => setBlind(event.target.checked)} />
            Blind
          </label>
          <span className="grow" />
          <button type="submit" className="button primary" disabled={!text.trim() || state.on}>
            Compare
          </button>
        </div>
      </form>
      {state.problem && (
        <p className="problem" role="alert">
          {state.problem}
        </p>
      )}
      {!state.panes.length && (
        <p className="quiet">
          All of them answer at once, each in a pane that can be stopped by itself. Closing this page stops them. Blind
          hides the names until you have chosen. The answers are kept in the archive.
        </p>
      )}
      <div className="panes">
        {state.panes.map((pane, n) => (
          <PaneView
            // biome-ignore lint/suspicious/noArrayIndexKey: panes are places
            key={n}
            place={n + 1}
            pane={pane}
            name={blind && vote === null ? `Answer ${LETTERS[n]}` : nameOf(pane.choice, options)}
            voted={vote === n}
            onVote={blind && vote === null && !state.on ? () => setVote(n) : null}
            onStop={() => pane.runId && void comparison.stop(pane.runId)}
            onContinue={() => {
              if (pane.sessionId === null) return;
              void comparison.choose(pane.sessionId).catch(() => undefined);
              navigate(`/c/${pane.sessionId}`);
            }}
          />
        ))}
      </div>
    </div>
  );
}

interface PaneProps {
  place: number;
  pane: Pane;
  name: string;
  voted: boolean;
  onVote: (() => void) | null;
  onStop: () => void;
  onContinue: () => void;
}

function PaneView({ place, pane, name, voted, onVote, onStop, onContinue }: PaneProps) {
  const { transcript } = pane;
  const growing = transcript.status === "streaming";
  return (
    <section className={voted ? "pane voted" : "pane"} aria-label={`${place}: ${name}`} aria-busy={growing}>
      <header>
        <h2>{name}</h2>
        <span className="quiet">{figures(pane)}</span>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <div className="pane-body" tabIndex={0}>
        <Parts parts={transcript.parts} growing={growing} plain={false} />
        {transcript.status === "cancelled" && <p className="notice calm">Stopped.</p>}
        {transcript.status === "failed" && <p className="notice bad">{transcript.error?.message ?? "It failed."}</p>}
        {transcript.status === "interrupted" && <p className="notice warn">Interrupted.</p>}
      </div>
      <footer className="row">
        {growing ? (
          <button type="button" className="button small" onClick={onStop} disabled={pane.runId === null}>
            Stop
          </button>
        ) : (
          <button type="button" className="button small" onClick={onContinue}>
            Continue with this one
          </button>
        )}
        {onVote && (
          <button type="button" className="button small primary" onClick={onVote}>
            This is the best
          </button>
        )}
        {voted && <strong>Your choice</strong>}
      </footer>
    </section>
  );
}

function figures({ firstAt, endedAt, transcript, deltas }: Pane): string {
  if (firstAt === null) return "";
  const tokens = transcript.usage?.output_tokens ?? deltas;
  const rate =
    endedAt !== null && endedAt > firstAt
      ? ` · ${count(Math.round((tokens * 1000) / (endedAt - firstAt)))} tokens/s`
      : "";
  return `first after ${duration(firstAt)}${rate}`;
}

interface Option {
  readonly id: string;
  readonly name: string;
  readonly choice: Choice;
}

function useOptions(): readonly Option[] {
  const { models, agents } = useStore(useApp().catalogue);
  return useMemo(
    () => [
      { id: "", name: "Default", choice: {} },
      ...models
        .filter((model) => model.available)
        .map((model) => ({ id: `m:${model.id}`, name: model.name, choice: { model: model.id } })),
      ...(agents.length > 1 ? agents : []).map((agent) => ({
        id: `a:${agent.name}`,
        name: `${agent.name} (agent)`,
        choice: { agent: agent.name },
      })),
    ],
    [models, agents],
  );
}

/** Something else than the default to compare it with, if there is. */
function otherThan(options: readonly Option[], defaultModel: string | null): string {
  return options.find(({ choice }) => choice.model && choice.model !== defaultModel)?.id ?? "";
}

function nameOf(choice: Choice, options: readonly Option[]): string {
  const id = choice.model ? `m:${choice.model}` : choice.agent ? `a:${choice.agent}` : "";
  return options.find((option) => option.id === id)?.name ?? "Default";
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

// Sends one prompt to two to six models and shows their answers side by side. The address names the sessions, so that a
// reload shows them again.

import { useEffect, useMemo, useState } from "react";
import { type Choice, Comparison, type Pane } from "../../core/comparison.ts";
import { useApp, useStore } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";
import styles from "./Compare.module.css";
import { CompareForm } from "./CompareForm.tsx";
import { ComparePane } from "./ComparePane.tsx";
import { optionName, useCompareOptions } from "./compare-options.ts";
import { RecentComparisons } from "./RecentComparisons.tsx";

export default function Compare() {
  const comparison = useComparison();
  const { prompt, panes, blind, best, running, problem } = useStore(comparison.state);
  const options = useCompareOptions();
  const [startBlind, setStartBlind] = useState(false);
  const hidden = blind && best === null;
  const start = (prompt: string, choices: readonly Choice[]) =>
    void comparison.start(prompt, startBlind ? shuffle(choices) : choices, startBlind);
  const continueChat = async (pane: Pane) => {
    if (pane.sessionId === null) return;
    await comparison.continuePane(pane).catch(() => undefined); // the chat offers it again
    navigate(`/c/${pane.sessionId}`);
  };
  return (
    <ScrollingScreen
      title="Compare"
      actions={
        running ? (
          <Button onClick={() => comparison.stopAll()}>Stop all</Button>
        ) : (
          panes.length > 0 && <Button onClick={() => comparison.clear()}>New comparison</Button>
        )
      }
    >
      <CompareForm
        options={options}
        running={running}
        blind={startBlind}
        onBlindChange={setStartBlind}
        onStart={start}
      />
      {problem && <Alert text={problem} />}
      {!panes.length && !running && (
        <>
          <p className={text.quiet}>
            Send one prompt to several models and compare their answers side by side. Leaving this page stops them. A
            blind test hides the model names until you pick the best answer.
          </p>
          <RecentComparisons options={options} onOpen={(ids) => void comparison.restore(ids)} />
        </>
      )}
      {prompt && (
        <p className={classNames(text.plain, styles.prompt)} dir="auto">
          {prompt}
        </p>
      )}
      <div className={styles.panes}>
        {panes.map((pane, n) => (
          <ComparePane
            // biome-ignore lint/suspicious/noArrayIndexKey: panes do not move
            key={n}
            position={n + 1}
            pane={pane}
            name={hidden ? `Answer ${"ABCDEF"[n]}` : optionName(pane.choice, options)}
            best={best === n}
            onPickBest={best === null && !running ? () => void comparison.vote(n) : null}
            onDecide={(...answer) => comparison.decide(pane.runId ?? "", ...answer)}
            onAnswer={(requestId, answer) => comparison.answerInput(pane.runId ?? "", requestId, answer)}
            onStop={() => pane.runId && void comparison.stop(pane.runId)}
            onContinue={() => void continueChat(pane)}
          />
        ))}
      </div>
    </ScrollingScreen>
  );
}

/** The comparison of this screen, which the address names; leaving the screen stops it. */
function useComparison(): Comparison {
  const { env, api } = useApp();
  const comparison = useMemo(() => new Comparison(env, api), [env, api]);
  const { panes, problem } = useStore(comparison.state);
  const shown = panes.flatMap((pane) => pane.sessionId ?? []).join(",");
  useEffect(() => {
    const named = new URLSearchParams(location.search).get("chats");
    if (named) void comparison.restore(named.split(",").slice(0, MAX_RESTORED));
    return () => comparison.leave();
  }, [comparison]);
  useEffect(() => {
    if (shown) history.replaceState(null, "", withRoot(`/compare?chats=${shown}`));
    else if (!comparison.state.get().running && problem === null) history.replaceState(null, "", withRoot("/compare"));
  }, [comparison, shown, problem]);
  return comparison;
}

const MAX_RESTORED = 12;

function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

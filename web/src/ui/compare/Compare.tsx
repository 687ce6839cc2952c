// Sends one prompt to two to six models and shows their answers side by side.

import { useEffect, useMemo, useState } from "react";
import { type Choice, Comparison, type Pane } from "../../core/comparison.ts";
import { useApp, useStore } from "../context.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import text from "../widgets/text.module.css";
import styles from "./Compare.module.css";
import { CompareForm } from "./CompareForm.tsx";
import { ComparePane } from "./ComparePane.tsx";
import { optionName, useCompareOptions } from "./compare-options.ts";

export default function Compare() {
  const comparison = useComparison();
  const { panes, running, problem } = useStore(comparison.state);
  const options = useCompareOptions();
  const [blind, setBlind] = useState(false);
  const [best, setBest] = useState<number | null>(null);
  const hidden = blind && best === null;
  const start = (prompt: string, choices: readonly Choice[]) => {
    setBest(null);
    void comparison.start(prompt, blind ? shuffle(choices) : choices);
  };
  const continueChat = ({ sessionId }: Pane) => {
    if (sessionId === null) return;
    void comparison.choose(sessionId).catch(() => undefined);
    navigate(`/c/${sessionId}`);
  };
  return (
    <ScrollingScreen
      title="Compare"
      actions={running && <Button onClick={() => comparison.stopAll()}>Stop all</Button>}
    >
      <CompareForm options={options} running={running} blind={blind} onBlindChange={setBlind} onStart={start} />
      {problem && <Alert text={problem} />}
      {!panes.length && (
        <p className={text.quiet}>
          Send one prompt to several models and compare their answers side by side. Leaving this page stops them. A
          blind test hides the model names until you pick the best answer. Answers are saved to your archived chats.
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
            onPickBest={hidden && !running ? () => setBest(n) : null}
            onStop={() => pane.runId && void comparison.stop(pane.runId)}
            onContinue={() => continueChat(pane)}
          />
        ))}
      </div>
    </ScrollingScreen>
  );
}

/** The comparison of this screen; leaving the screen stops it. */
function useComparison(): Comparison {
  const { env, api } = useApp();
  const comparison = useMemo(() => new Comparison(env, api), [env, api]);
  useEffect(() => () => comparison.leave(), [comparison]);
  return comparison;
}

function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

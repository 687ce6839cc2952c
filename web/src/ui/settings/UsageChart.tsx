import type { UsageGroupResponse } from "../../core/api-types.ts";
import { formatCompact, formatDay } from "../format.ts";
import styles from "./Usage.module.css";
import { costText } from "./usage-cost.ts";

const HEIGHT = 100;
const GAP = 0.2;

const tokensOf = ({ input_tokens, output_tokens }: UsageGroupResponse) => input_tokens + output_tokens;

/** A bar per day. The table below has the same numbers, so assistive technology is told the shape alone. */
export function UsageChart({ days }: { days: readonly UsageGroupResponse[] }) {
  const most = Math.max(...days.map(tokensOf), 1);
  const top = days.find((day) => tokensOf(day) === most);
  const [first, last] = [days[0], days.at(-1)];
  if (!first || !last) return null;
  const summary = top ? `Tokens per day. Most: ${formatCompact(most)} on ${formatDay(top.key)}` : "Tokens per day";
  return (
    <figure className={styles.chart}>
      <svg viewBox={`0 0 ${days.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {days.map((day, n) => {
          const output = (day.output_tokens / most) * HEIGHT;
          const height = (tokensOf(day) / most) * HEIGHT;
          return (
            <g key={day.key}>
              <title>
                {[formatDay(day.key), `${formatCompact(tokensOf(day))} tokens`, costText(day)]
                  .filter(Boolean)
                  .join(" · ")}
              </title>
              <rect className={styles.hit} x={n} y={0} width={1} height={HEIGHT} />
              <rect
                className={styles.input}
                x={n + GAP / 2}
                y={HEIGHT - height}
                width={1 - GAP}
                height={height - output}
              />
              <rect className={styles.output} x={n + GAP / 2} y={HEIGHT - output} width={1 - GAP} height={output} />
            </g>
          );
        })}
      </svg>
      <figcaption className={styles.axis}>
        <span>{formatDay(first.key)}</span>
        <span className={styles.legend}>
          <span className={styles.inputMark} aria-hidden="true" /> Input
          <span className={styles.outputMark} aria-hidden="true" /> Output tokens
        </span>
        <span>{formatDay(last.key)}</span>
      </figcaption>
    </figure>
  );
}

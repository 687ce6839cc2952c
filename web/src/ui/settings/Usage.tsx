// Tokens, cost and time by day, model or project, with a chart of the days, and the budgets.

import { useCallback, useEffect, useState } from "react";
import { ApiError, errorMessage, usagePath } from "../../core/api.ts";
import type { UsageReportResponse, UsageSummaryResponse } from "../../core/api-types.ts";
import { dayIn, firstDay, localTimeZone } from "../../core/usage.ts";
import { useApp } from "../context.ts";
import { formatCompact, formatCount, formatDuration } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { Alert } from "../widgets/Alert.tsx";
import { buttonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import { Budgets } from "./Budgets.tsx";
import styles from "./Usage.module.css";
import { UsageChart } from "./UsageChart.tsx";
import { UsageTable } from "./UsageTable.tsx";
import { costText, type Grouping } from "./usage-cost.ts";

const GROUPINGS: readonly (readonly [Grouping, string])[] = [
  ["day", "Day"],
  ["model", "Model"],
  ["project", "Project"],
];
const PERIODS = [
  [7, "Last 7 days"],
  [30, "Last 30 days"],
  [90, "Last 90 days"],
  [365, "Last 12 months"],
] as const;

export function Usage() {
  const { api, env } = useApp();
  const [by, setBy] = useState<Grouping>("day");
  const [days, setDays] = useState(30);
  const [report, setReport] = useState<UsageReportResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [timeZone, setTimeZone] = useState(localTimeZone);
  const last = dayIn(timeZone, api.serverNow());
  const first = firstDay(last, days);
  const load = useCallback(async () => {
    try {
      setReport(await api.usage(by, first, last, timeZone));
      setProblem(null);
    } catch (error) {
      const isUnknownZone = error instanceof ApiError && error.field === "time_zone" && timeZone !== "UTC";
      if (isUnknownZone)
        setTimeZone("UTC"); // a server without data of time zones knows only this one
      else setProblem(errorMessage(error));
    }
  }, [api, by, first, last, timeZone]);
  useEffect(() => {
    void load();
    return env.onVisibilityChange(() => env.isHidden() || void load());
  }, [env, load]);
  const shown = report?.by === by ? report : null; // not the days under the heading of the models
  return (
    <>
      <div className={styles.choices}>
        <Segments label="Group by" options={GROUPINGS} value={by} onChange={setBy} />
        <select
          className={classNames(forms.field, forms.small)}
          aria-label="Period"
          value={days}
          onChange={({ target }) => setDays(Number(target.value))}
        >
          {PERIODS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        <a
          className={buttonClass(undefined, true)}
          href={withRoot(usagePath({ by, from: first, to: last, time_zone: timeZone, format: "csv" }))}
          download
        >
          Download CSV
        </a>
      </div>
      {problem && <Alert text={problem} />}
      {shown && (
        <>
          <Totals total={shown.total} />
          {by === "day" && shown.total.runs > 0 && <UsageChart days={shown.items} />}
          {shown.total.runs > 0 && <UsageTable report={shown} onPriceChange={load} />}
          <CostNotes report={shown} />
        </>
      )}
      <Budgets />
    </>
  );
}

function Totals({ total }: { total: UsageSummaryResponse }) {
  if (!total.runs) return <p className={text.quiet}>No answers in this period.</p>;
  const facts = [
    ["Answers", formatCount(total.runs)],
    ["Input tokens", formatCompact(total.input_tokens)],
    ["Output tokens", formatCompact(total.output_tokens)],
    ["Cost", costText(total) || "Unknown"],
    ["Time", formatDuration(total.seconds * 1000)],
  ] as const;
  return (
    <dl className={styles.totals} aria-label="Total">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function CostNotes({ report: { by, total, left_out } }: { report: UsageReportResponse }) {
  const notes = [
    total.estimated_cost > 0 && "~ Estimated from the prices of the models, because the provider reports no cost.",
    total.unpriced_tokens > 0 &&
      `The cost of ${formatCount(total.unpriced_tokens)} tokens is unknown.${by === "model" ? "" : " Group by model to set prices."}`,
    left_out > 0 && `${formatCount(left_out)} more with fewer tokens are not listed.`,
  ].filter(Boolean);
  return notes.length > 0 && <p className={forms.hint}>{notes.join(" ")}</p>;
}

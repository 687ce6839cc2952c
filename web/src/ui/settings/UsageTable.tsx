import { useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { PriceRequest, UsageGroupResponse, UsageReportResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { formatCompact, formatCount, formatDay, formatDuration } from "../format.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { PriceDialog } from "./PriceDialog.tsx";
import styles from "./Usage.module.css";
import { costText, type Grouping } from "./usage-cost.ts";

const SHORT = 10;
const HEADINGS: Readonly<Record<Grouping, string>> = { day: "Day", model: "Model", project: "Project" };

interface Props {
  report: UsageReportResponse;
  onPriceChange: () => Promise<void>;
}

export function UsageTable({ report: { by, items }, onPriceChange }: Props) {
  const { api } = useApp();
  const [all, setAll] = useState(false);
  const [priced, setPriced] = useState<UsageGroupResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const used = items.filter(({ runs }) => runs > 0);
  const rows = by === "day" ? used.reverse() : used;
  const shown = all ? rows : rows.slice(0, SHORT);
  const setPrice = async (model: string, price: PriceRequest | null) => {
    setPriced(null);
    try {
      await api.changePrice(model, price);
      setProblem(null);
      await onPriceChange();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <>
      {problem && <Alert text={problem} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways on a phone, also by keyboard */}
      <section className={styles.scroller} aria-label={`Usage by ${by}`} tabIndex={0}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{HEADINGS[by]}</th>
              <th scope="col">Cost</th>
              <th scope="col">Input</th>
              <th scope="col">Output</th>
              <th scope="col">Answers</th>
              <th scope="col">Time</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((group) => (
              <tr key={group.key}>
                <th scope="row">{nameOf(by, group.key)}</th>
                <td>
                  {by === "model" ? (
                    <button
                      type="button"
                      className={styles.price}
                      aria-label={`${group.has_own_price ? "Change" : "Set"} price: ${group.key}, cost ${costText(group) || "unknown"}`}
                      onClick={() => setPriced(group)}
                    >
                      {costText(group) || "Set price"}
                    </button>
                  ) : (
                    costText(group) || "–"
                  )}
                </td>
                <td title={formatCount(group.input_tokens)}>{formatCompact(group.input_tokens)}</td>
                <td title={formatCount(group.output_tokens)}>{formatCompact(group.output_tokens)}</td>
                <td>{formatCount(group.runs)}</td>
                <td>{formatDuration(group.seconds * 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length > SHORT && (
        <Button small onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${rows.length}`}
        </Button>
      )}
      {priced && (
        <PriceDialog
          model={priced.key}
          price={priced.price}
          isOwn={priced.has_own_price}
          onSave={(price) => void setPrice(priced.key, price)}
          onClose={() => setPriced(null)}
        />
      )}
    </>
  );
}

function nameOf(by: Grouping, key: string): string {
  if (by === "day") return formatDay(key);
  return key || "No project";
}

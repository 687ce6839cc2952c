import type { UsageReportResponse, UsageSummaryResponse } from "../../core/api-types.ts";
import { formatCost } from "../format.ts";

export type Grouping = UsageReportResponse["by"];

/** A cost with a mark if it is estimated; empty if nothing is known of it. */
export function costText({ cost, estimated_cost, unpriced_tokens }: UsageSummaryResponse): string {
  return cost === null || (cost === 0 && unpriced_tokens > 0)
    ? ""
    : `${estimated_cost > 0 ? "~" : ""}${cost === 0 ? "$0" : formatCost(cost)}`;
}

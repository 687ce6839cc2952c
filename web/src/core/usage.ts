// Usage and budgets: periods to choose from, and warnings about budgets that are used up.

import type { BudgetResponse } from "./api-types.ts";
import type { Env } from "./env.ts";
import type { Toasts } from "./toasts.ts";

const DAY_MS = 86_400_000;
const WARNED = "holdfast.budget-warnings";

/** The time zone of this device, by its IANA name. */
export function localTimeZone(): string {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined;
  return zone?.includes("/") ? zone : "UTC"; // browsers that hide it say nothing, or something else
}

/** The day that it is in a time zone, as `2026-11-19`. */
export function dayIn(timeZone: string, at: number): string {
  const parts = new Intl.DateTimeFormat("en", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
  const found = Object.fromEntries(parts.formatToParts(at).map(({ type, value }) => [type, value]));
  return `${found.year}-${found.month}-${found.day}`;
}

/** The first day of a period of so many days that ends with `last`. */
export function firstDay(last: string, days: number): string {
  return new Date(Date.parse(`${last}T00:00:00Z`) - (days - 1) * DAY_MS).toISOString().slice(0, 10);
}

/** How much of a budget is used, from 0 to 1. */
export const usedShare = ({ used, limit }: Pick<BudgetResponse, "used" | "limit">): number =>
  limit > 0 ? Math.min(1, used / limit) : 1;

/** Shows each warning once a day. What is used changes with every answer, so a warning is known by its beginning. */
export function showBudgetWarnings(env: Env, toasts: Toasts, warnings: readonly string[]): void {
  const today = new Date(env.now()).toDateString();
  const shown = readShown(env, today);
  const fresh = warnings.filter((warning) => !shown.includes(name(warning)));
  if (!fresh.length) return;
  toasts.show(fresh.join(" "));
  try {
    env.storage?.setItem(WARNED, JSON.stringify({ day: today, shown: [...shown, ...fresh.map(name)] }));
  } catch {
    // Storage is full or disabled: the warning is shown again.
  }
}

const name = (warning: string) => warning.split(":", 1)[0] ?? "";

function readShown(env: Env, today: string): readonly string[] {
  try {
    const { day, shown } = JSON.parse(env.storage?.getItem(WARNED) ?? "{}") as { day?: string; shown?: string[] };
    return day === today ? (shown ?? []) : [];
  } catch {
    return [];
  }
}

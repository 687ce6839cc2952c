// Formats times, sizes, numbers and statuses for display.

import { escapeInvisible } from "../core/invisible-characters.ts";
import type { Run, RunStatus } from "../core/types.ts";

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const number = new Intl.NumberFormat();

/** The time, with the date unless it is today. */
export function formatTime(iso: string, now = new Date()): string {
  const at = new Date(iso);
  return at.toDateString() === now.toDateString() ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}

export const formatDateTime = (iso: string): string => full.format(new Date(iso));
export const formatCount = (n: number): string => number.format(n);

const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });
/** A large number in few characters, such as 12.4K. */
export const formatCompact = (n: number): string => (n < 1000 ? number : compact).format(n);

const calendarDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
/** A day such as `2026-11-19`, whichever the time zone. */
export const formatDay = (iso: string): string => calendarDay.format(new Date(`${iso}T00:00:00Z`));

export function formatDuration(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`;
  if (ms < 59_500) return `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** A time on a timeline, in whole milliseconds: neighbors differ. */
export function formatOffset(ms: number): string {
  const seconds = (Math.round(ms) % 60_000) / 1000;
  const minutes = Math.floor(Math.round(ms) / 60_000);
  return minutes ? `${minutes}:${seconds.toFixed(3).padStart(6, "0")}` : `${seconds.toFixed(3)} s`;
}

export const formatSpeed = (tokens: number): string =>
  `${tokens < 9.95 ? tokens.toFixed(1) : formatCount(Math.round(tokens))} tokens/s`;

export function formatSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export const formatCost = (cost: number): string => `$${cost < 0.01 ? cost.toFixed(4) : cost.toFixed(2)}`;

/** Today, Yesterday, This week, or the month. */
export function ageGroup(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const days = Math.ceil((midnight - at.getTime()) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "This week";
  return at.toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

/** What a waiting run needs of the reader. */
export const waitText = (waitsFor: Run["waits_for"]): string =>
  waitsFor === "answer" ? "Asks you" : RUN_STATUS.waiting;

export const runStatus = ({ status, waits_for }: Run): string =>
  status === "waiting" ? waitText(waits_for) : RUN_STATUS[status];

const RUN_STATUS: Readonly<Record<RunStatus, string>> = {
  queued: "Queued",
  running: "Running",
  waiting: "Needs approval",
  complete: "Completed",
  cancelled: "Stopped",
  failed: "Failed",
  interrupted: "Interrupted",
};

/** A string as it is, anything else as JSON; invisible characters become escapes. */
export function formatJson(value: unknown): string {
  return escapeInvisible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

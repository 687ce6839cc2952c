// When things happened in a run, from its events alone. Only some of them say their time (`at`): what stands between
// two of those is put between them. A journal of an older version says none, and has an order only.

import { isTerminal } from "./fold.ts";
import type { Entry } from "./wire.ts";

export type Lane = "thinking" | "text" | "tools" | "waiting";

export interface Span {
  readonly lane: Lane;
  readonly name: string;
  /** Milliseconds since the first event. */
  readonly from: number;
  readonly to: number;
  readonly failed: boolean;
}

export interface Gap {
  /** Nothing came after this event until `to`. */
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

export interface Timeline {
  /** Milliseconds since the first event, one for each event; never falling, whatever the clock did. */
  readonly times: readonly number[];
  /** false: no event says its time, and `times` counts events. */
  readonly timed: boolean;
  readonly total: number;
  readonly spans: readonly Span[];
  readonly gaps: readonly Gap[];
  readonly steps: readonly number[];
  /** When the first word came, of text or of reasoning. */
  readonly firstToken: number | null;
}

/** Silence of this length is worth showing. */
const SILENCE = 1000;

export function timeline(entries: readonly Entry[]): Timeline {
  const { times, timed } = timesOf(entries);
  const spans = spansOf(entries, times);
  const first = entries.findIndex((entry) => entry.type === "text.delta" || entry.type === "reasoning.delta");
  return {
    times,
    timed,
    total: times.at(-1) ?? 0,
    spans,
    gaps: timed ? gapsOf(entries, times, spans) : [],
    steps: entries.flatMap((entry, n) => (entry.type === "step.started" ? [times[n] ?? 0] : [])),
    firstToken: first < 0 || !timed ? null : (times[first] ?? null),
  };
}

/** How many events had come at that time. */
export function eventsBy(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function timesOf(entries: readonly Entry[]): { times: number[]; timed: boolean } {
  const said = entries.map(({ data }) => (typeof data.at === "number" ? data.at : null));
  const start = said.find((at) => at !== null);
  if (start == null) return { times: entries.map((_, n) => n), timed: false };
  const times: number[] = [];
  let [before, from] = [0, -1]; // the last time that was said, and which event said it
  for (const [n, at] of said.entries()) {
    if (at === null) continue;
    const now = Math.max(before, at - start);
    for (let between = from + 1; between < n; between++) {
      times.push(before + ((now - before) * (between - from)) / (n - from));
    }
    times.push(now);
    [before, from] = [now, n];
  }
  while (times.length < entries.length) times.push(before);
  return { times, timed: true };
}

const DELTAS: Readonly<Record<string, Lane>> = { "reasoning.delta": "thinking", "text.delta": "text" };

type Draft = { -readonly [Key in keyof Span]: Span[Key] };

function spansOf(entries: readonly Entry[], times: readonly number[]): Span[] {
  const spans: Draft[] = [];
  const open = new Map<string, Draft>();
  const begin = (key: string, lane: Lane, name: string, from: number) => {
    const span = { lane, name, from, to: from, failed: false };
    spans.push(span);
    open.set(key, span);
  };
  const end = (key: string, to: number, failed = false) => {
    const span = open.get(key);
    open.delete(key);
    if (span) Object.assign(span, { to, failed });
  };
  let said: Draft | undefined; // deltas of one kind, without a silence between them
  for (const [n, { type, data }] of entries.entries()) {
    const now = times[n] ?? 0;
    const lane = DELTAS[type];
    if (!lane) said = undefined;
    else if (said?.lane === lane && now - said.to < SILENCE) said.to = now;
    else {
      said = { lane, name: lane === "text" ? "Text" : "Thinking", from: now, to: now, failed: false };
      spans.push(said);
    }
    if (type === "tool.started") begin(`tool ${data.call_id}`, "tools", String(data.name), now);
    else if (type === "tool.finished") end(`tool ${data.call_id}`, now, data.is_error === true);
    else if (type === "approval.requested")
      begin(`ask ${data.approval_id}`, "waiting", `Waits: ${String(data.name)}`, now);
    else if (type === "approval.resolved") end(`ask ${data.approval_id}`, now, data.decision === "deny");
    else if (isTerminal(type)) for (const key of [...open.keys()]) end(key, now, true);
  }
  const last = times.at(-1) ?? 0;
  for (const span of open.values()) span.to = last; // still at work
  return spans;
}

/** Silences in which no tool was at work and nobody was asked. */
function gapsOf(entries: readonly Entry[], times: readonly number[], spans: readonly Span[]): Gap[] {
  const covered = spans.filter((span) => span.lane === "tools" || span.lane === "waiting");
  const gaps: Gap[] = [];
  for (let n = 1; n < entries.length; n++) {
    const [from, to] = [times[n - 1] as number, times[n] as number];
    if (to - from < SILENCE || covered.some((span) => span.from <= from && span.to >= to)) continue;
    gaps.push({ seq: (entries[n - 1] as Entry).seq, from, to });
  }
  return gaps;
}

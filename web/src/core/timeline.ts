// Computes the timeline of a run from its events. Only some events carry a time (`at`); the others are interpolated.
// Journals of older versions have no times, only an order.

import { isTerminal } from "./fold.ts";
import type { JsonObject, RunEvent } from "./types.ts";
import { ASK_USER } from "./user-questions.ts";

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
  /** The last event before the gap. */
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

export interface Timeline {
  /** Milliseconds since the first event, one per event; never decreasing, even if the clock jumped. */
  readonly times: readonly number[];
  /** false: no event has a time, and `times` counts events. */
  readonly timed: boolean;
  readonly total: number;
  readonly spans: readonly Span[];
  readonly gaps: readonly Gap[];
  readonly steps: readonly number[];
  /** The time of the first text or reasoning token. */
  readonly firstToken: number | null;
}

/** Pauses shorter than this are not shown. */
const MIN_GAP_MS = 1000;

export function buildTimeline(events: readonly RunEvent[]): Timeline {
  const { times, timed } = computeTimes(events);
  const spans = findSpans(events, times);
  const first = events.findIndex((event) => event.type === "text.delta" || event.type === "reasoning.delta");
  return {
    times,
    timed,
    total: times.at(-1) ?? 0,
    spans,
    gaps: timed ? findGaps(events, times, spans) : [],
    steps: events.flatMap((event, n) => (event.type === "step.started" ? [times[n] ?? 0] : [])),
    firstToken: first < 0 || !timed ? null : (times[first] ?? null),
  };
}

/** Returns how many events had arrived at `time`. */
export function countEventsAt(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function computeTimes(events: readonly RunEvent[]): { times: number[]; timed: boolean } {
  const known = events.map(({ data }) => (typeof data.at === "number" ? data.at : null));
  const start = known.find((at) => at !== null);
  if (start == null) return { times: events.map((_, n) => n), timed: false };
  const times: number[] = [];
  let [before, from] = [0, -1]; // the last known time and the index of its event
  for (const [n, at] of known.entries()) {
    if (at === null) continue;
    const now = Math.max(before, at - start);
    for (let between = from + 1; between < n; between++) {
      times.push(before + ((now - before) * (between - from)) / (n - from));
    }
    times.push(now);
    [before, from] = [now, n];
  }
  while (times.length < events.length) times.push(before);
  return { times, timed: true };
}

const DELTAS: Readonly<Record<string, Lane>> = { "reasoning.delta": "thinking", "text.delta": "text" };

/** Events that begin and end a span of their own. */
const STARTS: Readonly<Record<string, (data: JsonObject) => { key: string; lane: Lane; name: string }>> = {
  "tool.started": (data) => ({ key: `tool ${data.call_id}`, lane: "tools", name: String(data.name) }),
  "approval.requested": (data) => ({
    key: `approval ${data.approval_id}`,
    lane: "waiting",
    name: data.name === ASK_USER ? "Question to you" : `Approval: ${String(data.name)}`,
  }),
  "input.requested": (data) => ({
    key: `input ${data.request_id}`,
    lane: "waiting",
    name: `Question: ${String(data.server)}`,
  }),
};
const ENDS: Readonly<Record<string, (data: JsonObject) => { key: string; failed: boolean }>> = {
  "tool.finished": (data) => ({ key: `tool ${data.call_id}`, failed: data.is_error === true }),
  "approval.resolved": (data) => ({ key: `approval ${data.approval_id}`, failed: data.decision === "deny" }),
  "input.resolved": (data) => ({ key: `input ${data.request_id}`, failed: data.action !== "accept" }),
};

type SpanDraft = { -readonly [Key in keyof Span]: Span[Key] };

function findSpans(events: readonly RunEvent[], times: readonly number[]): Span[] {
  const spans: SpanDraft[] = [];
  const open = new Map<string, SpanDraft>();
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
  let current: SpanDraft | undefined; // deltas of one kind without a gap between them
  for (const [n, { type, data }] of events.entries()) {
    const now = times[n] ?? 0;
    const lane = DELTAS[type];
    if (!lane) current = undefined;
    else if (current?.lane === lane && now - current.to < MIN_GAP_MS) current.to = now;
    else {
      current = { lane, name: lane === "text" ? "Text" : "Thinking", from: now, to: now, failed: false };
      spans.push(current);
    }
    const started = STARTS[type]?.(data);
    const finished = ENDS[type]?.(data);
    if (started) begin(started.key, started.lane, started.name, now);
    else if (finished) end(finished.key, now, finished.failed);
    else if (isTerminal(type)) for (const key of [...open.keys()]) end(key, now, true);
  }
  const last = times.at(-1) ?? 0;
  for (const span of open.values()) span.to = last; // still in progress
  return spans;
}

/** Finds the pauses in which no tool ran and no approval was pending. */
function findGaps(events: readonly RunEvent[], times: readonly number[], spans: readonly Span[]): Gap[] {
  const covered = spans.filter((span) => span.lane === "tools" || span.lane === "waiting");
  const gaps: Gap[] = [];
  for (let n = 1; n < events.length; n++) {
    const [from, to] = [times[n - 1] as number, times[n] as number];
    if (to - from < MIN_GAP_MS || covered.some((span) => span.from <= from && span.to >= to)) continue;
    gaps.push({ seq: (events[n - 1] as RunEvent).seq, from, to });
  }
  return gaps;
}

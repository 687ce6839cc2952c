import { describe, expect, it } from "vitest";
import { buildTimeline, countEventsAt } from "../src/core/timeline.ts";
import type { JsonObject, RunEvent } from "../src/core/types.ts";

const START = 1_700_000_000_000;

function journal(...events: [string, number | null, JsonObject?][]): RunEvent[] {
  return events.map(([type, at, data = {}], n) => ({
    seq: n + 1,
    type,
    data: at === null ? data : { ...data, at: START + at },
  }));
}

describe("a timeline", () => {
  it("interpolates events without a time", () => {
    const { times, timed } = buildTimeline(
      journal(["run.started", 0], ["text.delta", 100], ["text.delta", null], ["usage", 200]),
    );
    expect(times).toEqual([0, 100, 150, 200]);
    expect(timed).toBe(true);
  });

  it("never runs backwards, even if the clock does", () => {
    const { times } = buildTimeline(
      journal(["run.started", 500], ["text.delta", 900], ["usage", 100], ["run.complete", 950]),
    );
    expect(times).toEqual([0, 400, 400, 450]);
  });

  it("counts events where a journal has no times", () => {
    const line = buildTimeline(journal(["run.started", null], ["text.delta", null], ["run.complete", null]));
    expect(line).toMatchObject({ times: [0, 1, 2], timed: false, firstToken: null, gaps: [] });
  });

  it("finds the first token, tools, approvals and gaps", () => {
    const line = buildTimeline(
      journal(
        ["run.started", 0],
        ["step.started", 5],
        ["reasoning.delta", 1800, { text: "Hm." }],
        ["text.delta", 2000, { text: "a" }],
        ["text.delta", 2250, { text: "b" }],
        ["tool.started", 2300, { call_id: "c", name: "shell", args: {} }],
        ["tool.finished", 6000, { call_id: "c", result: "", is_error: true }],
        ["approval.requested", 6001, { approval_id: "p", call_id: "d", name: "rm", args: {} }],
        ["approval.resolved", 60_001, { approval_id: "p", decision: "once" }],
        ["tool.started", 60_002, { call_id: "d", name: "rm", args: {} }],
        ["run.interrupted", 90_000],
      ),
    );
    expect(line.firstToken).toBe(1800);
    expect(line.steps).toEqual([5]);
    expect(line.spans).toEqual([
      { lane: "thinking", name: "Thinking", from: 1800, to: 1800, failed: false },
      { lane: "text", name: "Text", from: 2000, to: 2250, failed: false },
      { lane: "tools", name: "shell", from: 2300, to: 6000, failed: true },
      { lane: "waiting", name: "Approval: rm", from: 6001, to: 60_001, failed: false },
      { lane: "tools", name: "rm", from: 60_002, to: 90_000, failed: true },
    ]);
    expect(line.gaps).toEqual([{ seq: 2, from: 5, to: 1800 }]);
  });

  it("counts the events at any time", () => {
    const times = [0, 10, 10, 30];
    expect([-1, 0, 9, 10, 29, 30, 99].map((time) => countEventsAt(times, time))).toEqual([0, 1, 1, 3, 3, 4, 4]);
  });
});

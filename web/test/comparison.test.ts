import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { Comparison } from "../src/core/comparison.ts";
import { EMPTY } from "../src/core/fold.ts";
import { Recording } from "../src/core/recording.ts";
import { FakeEnv, frame, json, line, settle, text } from "./fake-env.ts";

const pane = (run_id: string, seq: number, type: string, data: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ run_id, seq, ...data })}\n\n`;

describe("a comparison", () => {
  it("folds and times each pane separately", async () => {
    const env = new FakeEnv();
    const events = line();
    env.answer(events.response);
    const comparison = new Comparison(env, new Api(env));
    const done = comparison.start("hello", [{ model: "a" }, { model: "b" }]);
    await settle();
    expect(JSON.parse(env.calls[0]?.body ?? "")).toEqual({
      runs: [
        { input: "hello", model: "a" },
        { input: "hello", model: "b" },
      ],
      comparison: { id: expect.any(String), blind: false },
    });
    const runs = [
      { run_id: "r1", session_id: "s1" },
      { run_id: "r2", session_id: "s2" },
    ];
    events.say(`event: compare.started\ndata: ${JSON.stringify({ runs })}\n\n`);
    await env.pass(100);
    events.say(pane("r1", 1, "text.delta", { text: "x" }), pane("r2", 1, "text.delta", { text: "y" }));
    await env.pass(100);
    events.say(pane("r1", 2, "run.complete"));
    await env.pass(100);
    const [first, second] = comparison.state.get().panes;
    expect(first?.transcript.status).toBe("complete");
    expect(first?.firstTokenMs).toBe(116);
    expect(second?.transcript.status).toBe("streaming");
    expect(second?.endMs).toBeNull();
    events.say(pane("r2", 2, "run.cancelled"));
    events.end();
    await done;
    expect(comparison.state.get().panes[1]?.transcript.status).toBe("cancelled");
    expect(comparison.state.get().running).toBe(false);
  });

  it("resumes an answer that broke off when its pane is continued as a chat, and only then", async () => {
    const env = new FakeEnv();
    const comparison = new Comparison(env, new Api(env));
    for (const status of ["cancelled", "complete"] as const) {
      env.answer(json({ settings: { source: "compare" } }), json({}), json({}));
      const transcript = { ...EMPTY, status };
      const pane = { choice: {}, runId: "r1", sessionId: "s1", firstTokenMs: null, endMs: null, deltas: 0 };
      await comparison.continuePane({ ...pane, transcript });
    }
    expect(env.calls.map((call) => call.path).filter((path) => path.includes("continue"))).toEqual([
      "/api/runs/r1/continue",
    ]);
  });

  it("is shown whole after one of its answers became a chat, without those that were deleted", async () => {
    const env = new FakeEnv();
    const comparison = new Comparison(env, new Api(env));
    const session = (id: string) => json({ id, agent: "chat", model: null, settings: { source: "compare" } });
    const nothing = () => json({ items: [], next: null });
    const missing = () => json({ type: "not-found", detail: "No." }, 404);
    env.answer(session("s1"), session("s2"), missing(), nothing(), nothing());
    await comparison.restore(["s1", "s2", "s3"]);
    expect(comparison.state.get().panes.map((pane) => pane.sessionId)).toEqual(["s1", "s2"]);
    env.answer(session("s1"), json({}), session("s2"), json({}));
    await comparison.choose("s1");
    const changed = env.calls.filter((call) => call.method === "PATCH").map((call) => JSON.parse(call.body ?? ""));
    expect(changed).toEqual([
      { settings: {} },
      { settings: { source: "compare", comparison: { members: ["s1", "s2"] } } },
    ]);
    env.answer(missing());
    await comparison.restore(["s3"]);
    expect(comparison.state.get().problem).toBe("No.");
  });

  it("is stopped by leaving", async () => {
    const env = new FakeEnv();
    const comparison = new Comparison(env, new Api(env));
    void comparison.start("hello", [{}, {}]);
    await settle();
    comparison.leave();
    expect(env.calls[0]?.signal?.aborted).toBe(true);
  });
});

describe("a recording", () => {
  it("returns the message after any event", async () => {
    const env = new FakeEnv();
    const events = line();
    env.answer(events.response);
    const recording = new Recording(env, "run_1");
    await settle();
    const many = Array.from({ length: 700 }, (_, n) => text(n + 1, `${n} `));
    events.say(...many, frame(701, "run.complete", {}));
    await env.pass(100);
    const whole = Array.from({ length: 700 }, (_, n) => `${n} `);
    for (const n of [700, 0, 1, 255, 256, 257, 511, 512, 600]) {
      const [part] = recording.at(n).parts;
      expect(part?.type === "text" ? part.text : "").toBe(whole.slice(0, n).join(""));
    }
    expect(recording.at(701).status).toBe("complete");
    expect(recording.toJsonLines().split("\n").length).toBe(702);
  });
});

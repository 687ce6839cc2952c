import { describe, expect, it } from "vitest";
import type { StreamOutcome } from "../src/core/event-stream.ts";
import { EMPTY } from "../src/core/fold.ts";
import { LiveRun } from "../src/core/live-run.ts";
import { SseParser } from "../src/core/sse-parser.ts";
import { FakeEnv, frame, line, settle, text } from "./fake-env.ts";

function watch(env: FakeEnv) {
  const outcomes: StreamOutcome[] = [];
  const run = new LiveRun(
    env,
    "run_1",
    EMPTY,
    () => undefined,
    (outcome) => outcomes.push(outcome),
  );
  return {
    run,
    outcomes,
    said: () => run.transcript.parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
  };
}
const cursors = (env: FakeEnv) => env.calls.map((call) => call.headers["Last-Event-ID"]);

describe("the SSE parser", () => {
  it("assembles frames from chunks of any size and ignores comments", () => {
    const whole = `retry: 1000\n\n: still here\n\n${text(1, "é…")}${frame(2, "run.complete", {})}`;
    const bytes = new TextEncoder().encode(whole);
    for (let size = 1; size < 12; size++) {
      const parser = new SseParser();
      const frames = [];
      for (let at = 0; at < bytes.length; at += size) frames.push(...parser.push(bytes.slice(at, at + size)));
      expect(frames.map((item) => [item.id, item.event])).toEqual([
        ["1", "text.delta"],
        ["2", "run.complete"],
      ]);
      expect(JSON.parse(frames[0]?.data ?? "")).toEqual({ text: "é…" });
    }
  });
});

describe("a live run", () => {
  it("grows at most once per painted frame and ends with its terminal event", async () => {
    const env = new FakeEnv();
    const first = line();
    env.answer(first.response);
    const it = watch(env);
    await settle();
    first.say(text(1, "a"), text(2, "b"));
    await settle();
    expect(it.said()).toBe("");
    await env.pass(16);
    expect(it.said()).toBe("ab");
    first.say(text(3, "c") + frame(4, "run.complete", {}));
    await settle();
    expect(it.said()).toBe("abc");
    expect(it.outcomes).toEqual(["ended"]);
  });

  it("resumes at its cursor after a lost and an ended connection, without gap or repeat", async () => {
    const env = new FakeEnv();
    const [first, second, third] = [line(), line(), line()];
    env.answer(first.response, second.response, third.response);
    const it = watch(env);
    await settle();
    first.say(text(1, "a"));
    await settle();
    first.lose();
    await env.pass(400);
    second.say(text(1, "a"), text(2, "b")); // a repeated event is not shown twice
    await settle();
    second.end();
    await env.pass(400);
    third.say(text(3, "c"), frame(4, "run.complete", {}));
    await settle();
    expect(it.said()).toBe("abc");
    expect(cursors(env)).toEqual(["0", "1", "2"]);
  });

  it("reconnects at its cursor when a frame is missing", async () => {
    const env = new FakeEnv();
    const [first, second] = [line(), line()];
    env.answer(first.response, second.response);
    const it = watch(env);
    await settle();
    first.say(text(1, "a"), text(3, "c"));
    await env.pass(400);
    second.say(text(2, "b"), text(3, "c"), frame(4, "run.complete", {}));
    await settle();
    expect(it.said()).toBe("abc");
    expect(cursors(env)).toEqual(["0", "1"]);
  });

  it("backs off while the server is unreachable, for at most eight seconds", async () => {
    const env = new FakeEnv();
    env.answer(...Array.from({ length: 12 }, () => new Error("refused")));
    watch(env);
    await env.pass(300 + 600 + 1200);
    expect(env.calls.length).toBe(4);
    await env.pass(2400 + 4800 + 8 * 8000);
    expect(env.calls.length).toBe(13);
  });

  it("respects Retry-After of a 503", async () => {
    const env = new FakeEnv();
    env.answer(new Response(null, { status: 503, headers: { "Retry-After": "5" } }));
    watch(env);
    await env.pass(4900);
    expect(env.calls.length).toBe(1);
    await env.pass(200);
    expect(env.calls.length).toBe(2);
  });

  it("drops a connection without a heartbeat for 40 seconds", async () => {
    const env = new FakeEnv();
    const first = line();
    env.answer((call) => {
      call.signal?.addEventListener("abort", () => first.lose());
      return first.response;
    });
    watch(env);
    await settle();
    first.say("retry: 1000\n\n");
    await env.pass(30_000);
    first.say(": still here\n\n");
    await env.pass(30_000);
    expect(env.calls.length).toBe(1);
    await env.pass(11_000);
    expect(env.calls.length).toBe(2);
  });

  it("drops a connection that sends nothing in its first 10 seconds", async () => {
    const env = new FakeEnv();
    const first = line();
    env.answer((call) => {
      call.signal?.addEventListener("abort", () => first.lose());
      return first.response;
    });
    watch(env);
    await env.pass(11_000);
    expect(env.calls.length).toBe(2);
  });

  it("releases its connection while the tab is hidden and resumes when it is shown", async () => {
    const env = new FakeEnv();
    const [first, second] = [line(), line()];
    env.answer((call) => {
      call.signal?.addEventListener("abort", () => first.lose());
      return first.response;
    }, second.response);
    const it = watch(env);
    await settle();
    first.say(text(1, "a"));
    await env.pass(20);
    env.hide(true);
    await env.pass(60_000);
    expect(env.calls.length).toBe(1);
    expect(env.calls[0]?.signal?.aborted).toBe(true);
    env.hide(false);
    await settle();
    second.say(text(2, "b"), frame(3, "run.complete", {}));
    await settle();
    expect(it.said()).toBe("ab");
    expect(cursors(env)).toEqual(["0", "1"]);
  });

  it.each([
    [204, "ended"],
    [401, "unauthorized"],
    [404, "not-found"],
    [409, "cursor-ahead"],
    [410, "pruned"],
  ] as const)("is over with %i: %s", async (status, outcome) => {
    const env = new FakeEnv();
    env.answer(new Response(null, { status }));
    const it = watch(env);
    await env.pass(60_000);
    expect(it.outcomes).toEqual([outcome]);
    expect(env.calls.length).toBe(1);
  });
});

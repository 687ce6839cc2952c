import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { HiddenTabMonitor } from "../src/core/hidden-tab-monitor.ts";
import type { Json, Run } from "../src/core/types.ts";
import { FakeEnv, json } from "./fake-env.ts";

const run = (status: Run["status"], id = "run_1", lifetime = "detached") => ({
  id,
  status,
  lifetime,
  session_id: `of_${id}`,
});
const open = (...items: object[]) => json({ items, next: null });
const session = (settings: Json = null) => json({ settings });
const missing = () => json({ type: "not-found", detail: "gone" }, 404);

function hiddenTab() {
  const env = new FakeEnv();
  const monitor = new HiddenTabMonitor(env, new Api(env));
  return { env, updates: () => monitor.updates.get().map(({ run, kind }) => [run.id, kind]) };
}

describe("a hidden tab", () => {
  it("reports runs that wait or ended, and clears the updates when it is shown", async () => {
    const { env, updates } = hiddenTab();
    env.answer(open(run("running")), open(run("waiting")), session(), open(), json(run("complete")), session());
    env.hide(true);
    await env.pass(7000);
    expect(updates()).toEqual([
      ["run_1", "waits"],
      ["run_1", "ended"],
    ]);
    await env.pass(60_000);
    expect(env.calls.length).toBe(6); // no open runs: no more polling
    env.hide(false);
    expect(updates()).toEqual([]);
  });

  it("goes on after a run whose chat was deleted", async () => {
    const { env, updates } = hiddenTab();
    const mine = [json(run("complete", "run_2")), session()];
    env.answer(open(run("running"), run("running", "run_2")), open(), missing(), ...mine);
    env.hide(true);
    await env.pass(60_000);
    expect(updates()).toEqual([["run_2", "ended"]]);
    expect(env.calls.length).toBe(5);
  });

  it.each([
    ["is canceled", run("cancelled"), null],
    ["has a client that is connected", run("complete", "run_1", "attached"), null],
    ["is of a client of the API", run("complete"), { source: "openai" }],
    ["is open after all", run("running"), null],
  ])("says nothing of a run that %s, as the server does", async (_, ended, settings) => {
    const { env, updates } = hiddenTab();
    env.answer(open(run("running")), open(), json(ended), session(settings));
    env.hide(true);
    await env.pass(4000);
    expect(updates()).toEqual([]);
  });

  it.each([
    ["has a client that is connected", run("waiting", "run_1", "attached"), null],
    ["is of a client of the API", run("waiting"), { source: "openai" }],
    ["is of a temporary chat", run("waiting"), { keep: false }],
  ])("says nothing of a question of a run that %s, as the server does", async (_, asking, settings) => {
    const { env, updates } = hiddenTab();
    env.answer(open(run("running")), open(asking), session(settings));
    env.hide(true);
    await env.pass(4000);
    expect(updates()).toEqual([]);
  });

  it("reads again what it could not read", async () => {
    const { env, updates } = hiddenTab();
    env.answer(open(run("running")), open(), new Error("away"), open(), json(run("failed")), session());
    env.hide(true);
    await env.pass(10_000);
    expect(updates()).toEqual([["run_1", "ended"]]);
  });

  it("reports nothing that it reads after it was shown", async () => {
    const { env, updates } = hiddenTab();
    let send = (_: Response) => {};
    const slow = new Promise<Response>((resolve) => {
      send = resolve;
    });
    env.answer(open(run("running")), open(), () => slow, session());
    env.hide(true);
    await env.pass(3000);
    env.hide(false);
    send(json(run("complete")));
    await env.pass(60_000);
    expect(updates()).toEqual([]);
    expect(env.calls.length).toBe(4);
  });
});

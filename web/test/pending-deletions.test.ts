import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { PendingDeletions } from "../src/core/pending-deletions.ts";
import { FakeBrowser, FakeEnv, json, settle } from "./fake-env.ts";

function tab(env: FakeEnv) {
  const heard: string[] = [];
  const hear = (what: string) => (about: string) => void heard.push(`${what} ${about}`);
  const deletions = new PendingDeletions(env, new Api(env), {
    onHidden: hear("hidden"),
    onShown: hear("shown"),
    onDeleted: hear("deleted"),
    onFailed: hear("failed"),
  });
  return { env, deletions, heard, deletes: () => env.calls.map(({ method, path }) => `${method} ${path}`) };
}

const GONE = () => new Response(JSON.stringify({ type: "not-found", title: "Not found" }), { status: 404 });

describe("a deleted chat", () => {
  it("is hidden at once and deleted when the time to undo is over", async () => {
    const { env, deletions, heard, deletes } = tab(new FakeEnv());
    env.answer(json(null), json(null));
    deletions.add(["ses_a", "ses_b"], true);
    expect(heard).toEqual(["hidden ses_a", "hidden ses_b"]);
    await env.pass(8000);
    expect(deletes()).toEqual([]);
    await env.pass(2000);
    expect(deletes()).toEqual(["DELETE /api/sessions/ses_a?forget=true", "DELETE /api/sessions/ses_b?forget=true"]);
    expect(heard.slice(2)).toEqual(["deleted ses_a", "deleted ses_b"]);
    expect(env.storage.length).toBe(0);
  });

  it("comes back when that is undone, in every tab", async () => {
    const browser = new FakeBrowser();
    const [here, there] = [tab(new FakeEnv(browser)), tab(new FakeEnv(browser))];
    here.deletions.add(["ses_a"], false);
    expect(there.heard).toEqual(["hidden ses_a"]);
    here.deletions.undo(["ses_a"]);
    await here.env.pass(20_000);
    expect(here.heard).toEqual(["hidden ses_a", "shown ses_a"]);
    expect(there.heard).toEqual(["hidden ses_a", "shown ses_a"]);
    expect(here.deletes()).toEqual([]);
  });

  it("is deleted when the page is left, and the next page makes sure of it", async () => {
    const browser = new FakeBrowser();
    const before = tab(new FakeEnv(browser));
    before.deletions.add(["ses_a"], false);
    before.env.leavePage();
    expect(before.deletes()).toEqual(["DELETE /api/sessions/ses_a"]);
    before.env.close();
    const after = tab(new FakeEnv(browser));
    after.env.answer(GONE());
    await after.env.pass(1000);
    after.deletions.resume();
    await after.env.pass(100);
    expect(after.heard).toEqual(["hidden ses_a", "deleted ses_a"]);
    expect(after.env.storage.length).toBe(0);
  });

  it("can be undone while another tab is opened and left", async () => {
    const browser = new FakeBrowser();
    const here = tab(new FakeEnv(browser));
    here.deletions.add(["ses_a"], false);
    const there = tab(new FakeEnv(browser));
    there.deletions.resume();
    expect(there.heard).toEqual(["hidden ses_a"]);
    there.env.leavePage();
    expect(there.deletes()).toEqual([]);
    here.deletions.undo(["ses_a"]);
    expect(there.heard).toEqual(["hidden ses_a", "shown ses_a"]);
    await Promise.all([here.env.pass(20_000), there.env.pass(20_000)]);
    expect([...here.deletes(), ...there.deletes()]).toEqual([]);
  });

  it("is deleted by its own tab alone, or by another one if that was killed", async () => {
    const browser = new FakeBrowser();
    const here = tab(new FakeEnv(browser));
    const there = tab(new FakeEnv(browser));
    here.env.answer(json(null));
    there.env.answer(json(null));
    here.deletions.add(["ses_a"], false);
    there.deletions.resume();
    await there.env.pass(10_000);
    await here.env.pass(10_000);
    await there.env.pass(20_000);
    expect([here.deletes(), there.deletes()]).toEqual([["DELETE /api/sessions/ses_a"], []]);
    here.deletions.add(["ses_b"], true);
    here.env.close();
    await there.env.pass(20_000);
    expect(there.deletes()).toEqual(["DELETE /api/sessions/ses_b?forget=true"]);
    expect(there.heard.at(-1)).toBe("deleted ses_b");
  });

  it("does not keep the page from starting if what was stored about it is damaged", async () => {
    const { env, deletions, heard, deletes } = tab(new FakeEnv());
    for (const [n, damaged] of ['{"forget":fal', "null", "7", '{"at":"soon"}'].entries())
      env.storage.setItem(`holdfast.deleting.ses_${n}`, damaged);
    env.storage.setItem("holdfast.deleting.ses_a", JSON.stringify({ forget: false, at: env.now() }));
    env.answer(json(null));
    deletions.resume();
    await env.pass(100);
    expect(deletes()).toEqual(["DELETE /api/sessions/ses_a"]);
    expect(heard).toEqual(["hidden ses_a", "deleted ses_a"]);
    expect(env.storage.length).toBe(0);
  });

  it("is shown again if the server cannot delete it", async () => {
    const { env, deletions, heard } = tab(new FakeEnv());
    env.answer(new Error("offline"));
    deletions.add(["ses_a"], false);
    await env.pass(10_000);
    await settle();
    expect(heard.slice(1)).toEqual([
      "shown ses_a",
      "failed The chat was not deleted. The server is unreachable. Check your connection and try again.",
    ]);
  });
});

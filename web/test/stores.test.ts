import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { Drafts } from "../src/core/drafts.ts";
import { splitBlocks } from "../src/core/markdown-blocks.ts";
import { Outbox } from "../src/core/outbox.ts";
import { CoalescedTask } from "../src/core/store.ts";
import { FakeEnv, json } from "./fake-env.ts";

describe("the outbox", () => {
  it("resends with the same key until the server accepts", async () => {
    const env = new FakeEnv();
    const stored: string[] = [];
    const outbox = new Outbox(env, new Api(env), (sid) => stored.push(sid));
    env.answer(new Error("refused"), json({ type: "storage", detail: "away" }, 503), json({}, 202));
    const key = outbox.add("ses_1", "hello", []);
    await env.pass(5000);
    expect(stored).toEqual(["ses_1"]);
    expect(env.calls.map((call) => call.headers["Idempotency-Key"])).toEqual([key, key, key]);
    expect(outbox.state.get()[0]?.state).toBe("stored");
    outbox.confirm(new Set([key]));
    expect(outbox.state.get()).toEqual([]);
  });

  it("continues with the same key after a reload", async () => {
    const env = new FakeEnv();
    env.answer(new Error("refused"));
    const key = new Outbox(env, new Api(env), () => undefined).add("ses_1", "hello", []);
    await env.pass(10);
    const reloaded = new Outbox(env, new Api(env), () => undefined);
    env.answer(json({}, 202));
    reloaded.resume();
    await env.pass(10);
    expect(env.calls.at(-1)?.headers["Idempotency-Key"]).toBe(key);
    expect(reloaded.state.get()[0]?.state).toBe("stored");
  });

  it("keeps a refused message with its reason until it is resent or discarded", async () => {
    const env = new FakeEnv();
    const outbox = new Outbox(env, new Api(env), () => undefined);
    env.answer(json({ type: "disk", detail: "The disk is full." }, 507));
    const key = outbox.add("ses_1", "hello", []);
    await env.pass(60_000);
    expect(env.calls.length).toBe(1);
    expect(outbox.state.get()[0]).toMatchObject({ state: "refused", problem: "The disk is full." });
    outbox.discard(key);
    expect(outbox.state.get()).toEqual([]);
  });
});

describe("drafts", () => {
  it("are kept per session and removed when empty", () => {
    const env = new FakeEnv();
    const drafts = new Drafts(env);
    drafts.write("a", { text: "half a sen", files: [] });
    drafts.write("b", { text: "other", files: [] });
    expect(new Drafts(env).read("a").text).toBe("half a sen");
    drafts.write("a", { text: "", files: [] });
    expect(drafts.read("a").text).toBe("");
    expect(drafts.read("b").text).toBe("other");
  });
});

describe("a coalesced task", () => {
  it("runs one at a time, and once more for all calls made meanwhile", async () => {
    let runs = 0;
    const open: (() => void)[] = [];
    const latest = new CoalescedTask(() => {
      runs++;
      return new Promise((done) => open.push(done));
    });
    const [first, second, third] = [latest.run(), latest.run(), latest.run()];
    expect(runs).toBe(1);
    open.shift()?.();
    await first;
    await Promise.resolve();
    expect(runs).toBe(2);
    open.shift()?.();
    await Promise.all([second, third]);
    expect(runs).toBe(2);
  });
});

describe("Markdown blocks", () => {
  const TEXT =
    "# Title\n\nA paragraph\nof two lines.\n\n- one\n\n  inside one\n\n- two\n\n```js\nlet a;\n\nlet b;\n```\n\n$$\nx\n\ny\n$$\n\nEnd.";

  it("keep fences, formulas and loose lists whole", () => {
    expect(splitBlocks(TEXT).map((block) => block.text.trim().split("\n")[0])).toEqual([
      "# Title",
      "A paragraph",
      "- one",
      "```js",
      "$$",
      "End.",
    ]);
  });

  it("cover the whole text, and are the same however it arrives", () => {
    let grown = splitBlocks("");
    for (let end = 1; end <= TEXT.length; end++) grown = splitBlocks(TEXT.slice(0, end), grown);
    expect(grown).toEqual(splitBlocks(TEXT));
    expect(grown.map((block) => block.text).join("")).toBe(TEXT);
  });
});

import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { splitBlocks } from "../src/core/blocks.ts";
import { Drafts } from "../src/core/drafts.ts";
import { Outbox } from "../src/core/outbox.ts";
import { Latest } from "../src/core/store.ts";
import { json, Surroundings } from "./surroundings.ts";

describe("the outbox", () => {
  it("sends again with the same key until the server has it", async () => {
    const env = new Surroundings();
    const stored: string[] = [];
    const outbox = new Outbox(env, new Api(env), (sid) => stored.push(sid));
    env.answer(new Error("refused"), json({ type: "storage", detail: "away" }, 503), json({}, 202));
    const key = outbox.add("ses_1", "hello", []);
    await env.pass(5000);
    expect(stored).toEqual(["ses_1"]);
    expect(env.calls.map((call) => call.headers["Idempotency-Key"])).toEqual([key, key, key]);
    expect(outbox.state.get()[0]?.state).toBe("stored");
    outbox.seen(new Set([key]));
    expect(outbox.state.get()).toEqual([]);
  });

  it("goes on with the same key after a reload", async () => {
    const env = new Surroundings();
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

  it("keeps a refused message with its reason, to be sent again or dropped", async () => {
    const env = new Surroundings();
    const outbox = new Outbox(env, new Api(env), () => undefined);
    env.answer(json({ type: "disk", detail: "The disk is full." }, 507));
    const key = outbox.add("ses_1", "hello", []);
    await env.pass(60_000);
    expect(env.calls.length).toBe(1);
    expect(outbox.state.get()[0]).toMatchObject({ state: "refused", problem: "The disk is full." });
    outbox.drop(key);
    expect(outbox.state.get()).toEqual([]);
  });
});

describe("drafts", () => {
  it("are kept per session and gone when they are empty", () => {
    const env = new Surroundings();
    const drafts = new Drafts(env);
    drafts.write("a", { text: "half a sen", files: [] });
    drafts.write("b", { text: "other", files: [] });
    expect(new Drafts(env).read("a").text).toBe("half a sen");
    drafts.write("a", { text: "", files: [] });
    expect(drafts.read("a").text).toBe("");
    expect(drafts.read("b").text).toBe("other");
  });
});

describe("latest", () => {
  it("runs one at a time, and once more for all who asked meanwhile", async () => {
    let runs = 0;
    const open: (() => void)[] = [];
    const latest = new Latest(() => {
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

describe("blocks of Markdown", () => {
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

  it("are the whole text, and the same however it arrives", () => {
    let grown = splitBlocks("");
    for (let end = 1; end <= TEXT.length; end++) grown = splitBlocks(TEXT.slice(0, end), grown);
    expect(grown).toEqual(splitBlocks(TEXT));
    expect(grown.map((block) => block.text).join("")).toBe(TEXT);
  });
});

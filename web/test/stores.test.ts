import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { Drafts } from "../src/core/drafts.ts";
import { splitBlocks } from "../src/core/markdown-blocks.ts";
import { Outbox } from "../src/core/outbox.ts";
import { CoalescedTask } from "../src/core/store.ts";
import { FakeBrowser, FakeEnv, json } from "./fake-env.ts";

function openOutbox(env: FakeEnv) {
  const created: string[] = [];
  const stored: string[] = [];
  const outbox = new Outbox(env, new Api(env), {
    onSessionCreated: ({ id }) => created.push(id),
    onStored: (sid) => stored.push(sid),
  });
  return { outbox, created, stored };
}
const accepted = () => json({ run: { id: "run_1" } }, 202);
const HELLO = { text: "hello", files: [] };

describe("the outbox", () => {
  it("resends with the same key until the server accepts", async () => {
    const env = new FakeEnv();
    const { outbox, stored } = openOutbox(env);
    env.answer(new Error("refused"), json({ type: "storage", detail: "away" }, 503), accepted());
    const key = outbox.add("ses_1", HELLO);
    await env.pass(5000);
    expect(stored).toEqual(["ses_1"]);
    expect(env.calls.map((call) => call.headers["Idempotency-Key"])).toEqual([key, key, key]);
    expect(outbox.state.get()[0]?.state).toBe("stored");
    outbox.confirm(new Set([key]));
    expect(outbox.state.get()).toEqual([]);
  });

  it("continues with the same key after a reload", async () => {
    const browser = new FakeBrowser();
    const closed = new FakeEnv(browser);
    closed.answer(new Error("refused"));
    const key = openOutbox(closed).outbox.add("ses_1", HELLO);
    await closed.pass(10);
    closed.close();
    const env = new FakeEnv(browser);
    const reloaded = openOutbox(env).outbox;
    env.answer(accepted());
    reloaded.resume();
    await env.pass(10);
    expect(env.calls.at(-1)?.headers["Idempotency-Key"]).toBe(key);
    expect(reloaded.state.get()[0]?.state).toBe("stored");
  });

  it("sends the messages of a chat in the order in which they were typed, also after a reload", async () => {
    const browser = new FakeBrowser();
    const closed = new FakeEnv(browser);
    const { outbox } = openOutbox(closed);
    closed.answer(new Error("away"), new Error("away"));
    for (const text of ["one", "two", "three"]) {
      outbox.add("ses_1", { text, files: [] });
      await closed.pass(10);
    }
    expect(outbox.state.get().map((item) => item.problem === null)).toEqual([false, false, false]);
    const sent = (env: FakeEnv) => env.calls.map((call) => (JSON.parse(call.body ?? "") as { input: string }).input);
    expect(new Set(sent(closed))).toEqual(new Set(["one"]));
    closed.close();
    const env = new FakeEnv(browser);
    env.answer(new Error("away"), accepted(), accepted(), accepted());
    openOutbox(env).outbox.resume();
    await env.pass(20_000);
    expect(sent(env)).toEqual(["one", "one", "two", "three"]);
  });

  it("sends what follows a refused message, and does not wait for other chats", async () => {
    const env = new FakeEnv();
    const { outbox, stored } = openOutbox(env);
    env.answer(json({ type: "disk", detail: "The disk is full." }, 507), accepted(), accepted());
    for (const sid of ["ses_1", "ses_1", "ses_2"]) outbox.add(sid, HELLO);
    await env.pass(1000);
    expect(stored.sort()).toEqual(["ses_1", "ses_2"]);
  });

  it("keeps a refused message with its reason until it is resent or discarded", async () => {
    const env = new FakeEnv();
    const { outbox } = openOutbox(env);
    env.answer(json({ type: "disk", detail: "The disk is full." }, 507));
    const key = outbox.add("ses_1", HELLO);
    await env.pass(60_000);
    expect(env.calls.length).toBe(1);
    expect(outbox.state.get()[0]).toMatchObject({ state: "refused", problem: "The disk is full." });
    outbox.discard(key);
    expect(outbox.state.get()).toEqual([]);
  });

  it("creates the chat of a first message with the same key until its response arrives, then sends there", async () => {
    const env = new FakeEnv();
    const { outbox, created, stored } = openOutbox(env);
    env.answer(new Error("the response is lost"), json({ id: "ses_9" }, 201), accepted());
    const key = outbox.addChat({ model: "a" }, HELLO);
    await env.pass(5000);
    expect(env.calls.map((call) => [call.path, call.headers["Idempotency-Key"]])).toEqual([
      ["/api/sessions", key],
      ["/api/sessions", key],
      ["/api/sessions/ses_9/runs", key],
    ]);
    expect([created, stored]).toEqual([["ses_9"], ["ses_9"]]);
  });

  it("keeps the messages of each tab, and delivers those of a closed tab from another", async () => {
    const browser = new FakeBrowser();
    const [first, second] = [new FakeEnv(browser), new FakeEnv(browser)];
    second.newId = () => "other";
    const [one, two] = [openOutbox(first).outbox, openOutbox(second)];
    first.answer(new Error("away"));
    second.answer(new Error("away"));
    one.add("ses_1", HELLO);
    two.outbox.add("ses_2", HELLO);
    await first.pass(10);
    await second.pass(10);
    expect(second.calls.length).toBe(1); // the first tab delivers its own
    second.answer(accepted(), accepted());
    first.close();
    await second.pass(10_000);
    expect(two.stored.sort()).toEqual(["ses_1", "ses_2"]);
    expect(openOutbox(new FakeEnv(browser)).outbox.state.get()).toEqual([]);
  });

  it("shows in all tabs that a message was stored or discarded", async () => {
    const browser = new FakeBrowser();
    const [first, second] = [new FakeEnv(browser), new FakeEnv(browser)];
    const [one, two] = [openOutbox(first).outbox, openOutbox(second).outbox];
    const key = one.add("ses_1", HELLO); // waits for a response
    const gone = one.add("ses_1", HELLO);
    expect(two.state.get().map((item) => item.key)).toEqual([key, gone]);
    one.discard(gone);
    expect(two.state.get().map((item) => item.key)).toEqual([key]);
    two.confirm(new Set([key]));
    expect(one.state.get()).toEqual([]);
  });

  it("reads the messages that earlier versions kept in one entry", () => {
    const env = new FakeEnv();
    const old = { key: "k", sid: "ses_1", ...HELLO, at: "", state: "sending", problem: null };
    env.storage.setItem("holdfast.outbox", JSON.stringify([old]));
    expect(openOutbox(env).outbox.state.get()).toEqual([old]);
    expect(openOutbox(env).outbox.state.get()).toEqual([old]);
    expect(env.storage.getItem("holdfast.outbox")).toBeNull();
  });

  it("cancels a message that is stopped before the server has answered", async () => {
    const env = new FakeEnv();
    const { outbox } = openOutbox(env);
    let answer = (_: Response) => {};
    env.answer(
      () =>
        new Promise((done) => {
          answer = done;
        }),
      json({}),
    );
    outbox.add("ses_1", HELLO);
    await env.pass(10);
    await outbox.stop(outbox.state.get());
    expect(env.calls.length).toBe(1);
    answer(accepted());
    await env.pass(10);
    expect(env.calls.at(-1)?.path).toBe("/api/runs/run_1/cancel");
  });

  it("adds a text to the active run, or stops the run for it", async () => {
    const env = new FakeEnv();
    const { outbox } = openOutbox(env);
    env.answer(accepted(), accepted());
    outbox.add("ses_1", { ...HELLO, steers: "run_0" });
    outbox.add("ses_1", { ...HELLO, interrupts: true });
    await env.pass(10);
    expect(env.calls.map(({ path }) => path)).toEqual(["/api/runs/run_0/steer", "/api/sessions/ses_1/runs"]);
    expect(JSON.parse(env.calls[0]?.body ?? "")).toEqual({ text: HELLO.text });
    expect(JSON.parse(env.calls[1]?.body ?? "")).toMatchObject({ on_busy: "interrupt" });
    expect(outbox.addedKeys("ses_1").length).toBe(1); // the run may have read it: no message has this key then
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

describe("drafts of two tabs", () => {
  const draft = (text: string) => ({ text, files: [] });

  it("do not overwrite each other, and a closed tab's is shown by the next", () => {
    const browser = new FakeBrowser();
    const tab = new Map<string, string>();
    const one = new Drafts(new FakeEnv(browser, tab));
    const two = new Drafts(new FakeEnv(browser));
    one.write("a", draft("of one"));
    two.write("a", draft("of two"));
    expect(new Drafts(new FakeEnv(browser, tab)).read("a").text).toBe("of one"); // reloaded
    one.write("a", draft("")); // sent
    expect(new Drafts(new FakeEnv(browser)).read("a").text).toBe("of two");
    one.write("a", draft("one again"));
    two.write("a", draft(""));
    expect(one.read("a").text).toBe("one again");
    one.write("a", draft(""));
    expect(new Drafts(new FakeEnv(browser)).read("a").text).toBe("");
  });

  it("tell the message box of text that is added to them", () => {
    const drafts = new Drafts(new FakeEnv());
    const shown: string[] = [];
    const stop = drafts.onAppend("a", ({ text }) => shown.push(text));
    drafts.write("a", draft("typed"));
    drafts.append("a", "moved here");
    stop();
    drafts.append("a", "more");
    expect(shown).toEqual(["typed\n\nmoved here"]);
    expect(drafts.read("a").text).toBe("typed\n\nmoved here\n\nmore");
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

import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { Feed } from "../src/core/feed.ts";
import { Outbox } from "../src/core/outbox.ts";
import { Thread } from "../src/core/thread.ts";
import { Watch } from "../src/core/watch.ts";
import type { Message, Run, Session } from "../src/core/wire.ts";
import { frame, json, line, Surroundings, settle, text } from "./surroundings.ts";

const SESSION: Session = {
  id: "ses_1",
  title: "",
  agent: "chat",
  model: null,
  pinned: false,
  archived: false,
  tags: [],
  project: null,
  head: "msg_2",
  can_redo: false,
  active_run: "run_1",
  queued_runs: [],
  version: 1,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
};
const message = (id: string, fields: Partial<Message> = {}): Message => ({
  id,
  session_id: "ses_1",
  role: "assistant",
  parent_id: null,
  run_id: null,
  status: "complete",
  parts: [{ type: "text", text: id }],
  reason: null,
  error: null,
  recovery: null,
  siblings: [id],
  model: null,
  usage: null,
  idempotency_key: null,
  created_at: "2026-01-01T00:00:00Z",
  last_seq: 0,
  ...fields,
});
const asked = message("msg_1", { role: "user", idempotency_key: "key-1" });
const growing = (said: string, last_seq: number) =>
  message("msg_2", {
    parent_id: "msg_1",
    run_id: "run_1",
    status: "streaming",
    parts: said ? [{ type: "text", text: said }] : [],
    last_seq,
  });

function open(env: Surroundings) {
  const api = new Api(env);
  const outbox = new Outbox(env, api, () => undefined);
  return { thread: new Thread(env, api, outbox, "ses_1"), outbox };
}
const page = (items: Message[], next: string | null = null) => json({ items, next });
const said = (thread: Thread) =>
  thread.state.get().messages.map((item) => item.parts.map((part) => (part.type === "text" ? part.text : "")).join(""));

describe("a thread", () => {
  it("follows an open run from where the server's message ends, and keeps what it saw when the server is behind", async () => {
    const env = new Surroundings();
    const events = line();
    env.answer(json(SESSION), page([asked, growing("one ", 2)]), events.response);
    const { thread } = open(env);
    await thread.refresh();
    await settle();
    expect(env.calls[2]?.headers["Last-Event-ID"]).toBe("2");
    events.say(text(3, "two"));
    await env.pass(16);
    expect(said(thread)).toEqual(["msg_1", "one two"]);
    env.answer(json(SESSION), page([asked, growing("one ", 2)])); // read a moment before the last event
    await thread.refresh();
    expect(said(thread)).toEqual(["msg_1", "one two"]);
    expect(env.calls.length).toBe(5); // and not followed a second time
  });

  it("takes the stored message as the truth when the run has ended", async () => {
    const env = new Surroundings();
    const events = line();
    env.answer(json(SESSION), page([asked, growing("one", 2)]), events.response);
    const { thread } = open(env);
    await thread.refresh();
    await settle();
    const stored = message("msg_2", { parent_id: "msg_1", run_id: "run_1", parts: [{ type: "text", text: "one!" }] });
    env.answer(json({ ...SESSION, active_run: null }), page([asked, stored]));
    events.say(frame(3, "run.complete", {}));
    await settle();
    expect(said(thread)).toEqual(["msg_1", "one!"]);
    expect(thread.state.get().session?.active_run).toBeNull();
  });

  it("reads a run that waits for an answer from its beginning: the question's id is in the journal alone", async () => {
    const env = new Surroundings();
    const events = line();
    const tool = { type: "tool", call_id: "c", name: "shell", args: {}, result: null, is_error: false } as const;
    const waiting = { ...growing("", 2), parts: [{ ...tool, state: "waiting" as const }] };
    env.answer(json(SESSION), page([asked, waiting]), events.response);
    const { thread } = open(env);
    await thread.refresh();
    await settle();
    expect(env.calls[2]?.headers["Last-Event-ID"]).toBe("0");
    const ask = { approval_id: "apr_1", call_id: "c", name: "shell", args: {}, reason: "" };
    events.say(frame(1, "run.started", {}), frame(2, "approval.requested", ask));
    await env.pass(16);
    expect(thread.state.get().messages[1]?.approval?.approval_id).toBe("apr_1");
  });

  it("lets go of a sent message in the step in which the server's own appears", async () => {
    const env = new Surroundings();
    const { thread, outbox } = open(env);
    env.answer(json({}, 202));
    outbox.add("ses_1", "hello", []);
    await env.pass(10);
    const counts: number[] = [];
    const look = () => counts.push(thread.state.get().messages.length + outbox.state.get().length);
    env.answer(json({ ...SESSION, active_run: null }), page([asked]));
    await thread.refresh();
    look();
    expect(counts).toEqual([1]);
    expect(outbox.state.get()).toEqual([]);
  });

  it("keeps older pages while the branch is the same, and drops them when it is another", async () => {
    const env = new Surroundings();
    const quiet = { ...SESSION, active_run: null };
    const [a, b, c] = [message("a"), message("b", { parent_id: "a" }), message("c", { parent_id: "b" })];
    const { thread } = open(env);
    env.answer(json(quiet), page([c], "older"));
    await thread.refresh();
    env.answer(page([a, b]));
    await thread.loadOlder();
    expect(said(thread)).toEqual(["a", "b", "c"]);
    const before = thread.state.get().messages;
    env.answer(json(quiet), page([c], "older"));
    await thread.refresh();
    expect(said(thread)).toEqual(["a", "b", "c"]);
    expect(thread.state.get().messages[2]).toBe(before[2]); // the very same value: nothing is drawn again
    env.answer(json(quiet), page([message("x", { parent_id: "y" })], "other"));
    await thread.refresh();
    expect(said(thread)).toEqual(["x"]);
    expect(thread.state.get().older).toBe("other");
  });

  it("looks again by itself while output is being recovered", async () => {
    const env = new Surroundings();
    const lost = message("msg_2", { status: "interrupted", recovery: { state: "pending" }, parts: [] });
    const found = message("msg_2", { status: "interrupted", recovery: { state: "recovered" } });
    const quiet = { ...SESSION, active_run: null };
    const { thread } = open(env);
    env.answer(json(quiet), page([lost]), json(quiet), page([found]));
    await thread.refresh();
    await env.pass(3100);
    expect(said(thread)).toEqual(["msg_2"]);
    await env.pass(60_000);
    expect(env.calls.length).toBe(4);
  });

  it("says so when the session is gone", async () => {
    const env = new Surroundings();
    const { thread } = open(env);
    env.answer(json({ type: "not-found", detail: "gone" }, 404), json({ type: "not-found", detail: "gone" }, 404));
    await thread.refresh();
    expect(thread.state.get().missing).toBe(true);
  });
});

describe("the change feed", () => {
  it("comes back with the last id it was told, also one without an event, and not while the tab is hidden", async () => {
    const env = new Surroundings();
    const [first, second] = [line(), line()];
    env.answer((call) => {
      call.signal?.addEventListener("abort", () => first.lose());
      return first.response;
    }, second.response);
    const heard: string[] = [];
    const feed = new Feed(env, {
      frame: (got) => heard.push(got.event),
      line: (state) => heard.push(state),
      opened: () => heard.push("opened"),
      over: () => undefined,
    });
    await settle();
    first.say("id: gen-4\n\n");
    await settle();
    env.hide(true);
    await env.pass(10_000);
    expect(env.calls.length).toBe(1);
    env.hide(false);
    await settle();
    second.say('id: gen-5\nevent: run.changed\ndata: {"session_id":"ses_1"}\n\n');
    await settle();
    expect(env.calls[1]?.headers["Last-Event-ID"]).toBe("gen-4");
    expect(heard).toEqual(["open", "opened", "opened", "open", "run.changed"]);
    feed.close();
  });
});

describe("a hidden tab", () => {
  const run = (status: string) => ({ id: "run_1", status }) as Run;

  it("learns by looking that a run asks and that it ended, and forgets the news when it is shown", async () => {
    const env = new Surroundings();
    const watch = new Watch(env, new Api(env));
    const runs = (...items: Run[]) => json({ items, next: null });
    env.answer(runs(run("running")), runs(run("waiting")), runs(), json(run("complete")));
    env.hide(true);
    await env.pass(7000);
    expect(watch.news.get().map((item) => item.what)).toEqual(["asks", "ended"]);
    await env.pass(60_000);
    expect(env.calls.length).toBe(4); // nothing is open: nothing is looked for
    env.hide(false);
    expect(watch.news.get()).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { Api, UNREACHABLE } from "../src/core/api.ts";
import { ChangeFeed } from "../src/core/change-feed.ts";
import { Outbox } from "../src/core/outbox.ts";
import { Thread } from "../src/core/thread.ts";
import type { Message, Session } from "../src/core/types.ts";
import { FakeEnv, frame, json, line, settle, text } from "./fake-env.ts";

const SESSION: Session = {
  id: "ses_1",
  title: "",
  titled_by: "nobody",
  agent: "chat",
  model: null,
  system: null,
  settings: null,
  memory: null,
  cwd: null,
  agent_options: {},
  temperature: null,
  top_p: null,
  max_tokens: null,
  reasoning_effort: null,
  use_tools: null,
  previous_session_id: null,
  pinned: false,
  archived: false,
  tags: [],
  project: null,
  head: "msg_2",
  can_redo: false,
  active_run: "run_1",
  active_run_status: "running",
  waits_for: null,
  persona: null,
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
  persona: null,
  usage: null,
  summary: null,
  duration_ms: null,
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

function open(env: FakeEnv) {
  const api = new Api(env);
  const outbox = new Outbox(env, api, { onSessionCreated: () => undefined, onStored: () => undefined });
  return { thread: new Thread(env, api, outbox, "ses_1"), outbox };
}
const page = (items: Message[], next: string | null = null) => json({ items, next });
const said = (thread: Thread) =>
  thread.state.get().messages.map((item) => item.parts.map((part) => (part.type === "text" ? part.text : "")).join(""));

it("forgets an earlier problem when a message is sent", async () => {
  const env = new FakeEnv();
  const api = new Api(env);
  const outbox = new Outbox(env, api, { onSessionCreated: () => undefined, onStored: () => undefined });
  const thread = new Thread(env, api, outbox, "ses_1");
  thread.reportProblem("The model is not available.");
  thread.send("hello", []);
  expect(thread.state.get().problem).toBeNull();
  expect(outbox.state.get().map(({ sid, text }) => [sid, text])).toEqual([["ses_1", "hello"]]);
});

describe("a thread", () => {
  it("follows an open run from the end of the server's message, and keeps newer output than the server's", async () => {
    const env = new FakeEnv();
    const events = line();
    env.answer(json(SESSION), page([asked, growing("one ", 2)]), events.response);
    const { thread } = open(env);
    await thread.refresh();
    await settle();
    expect(env.calls[2]?.headers["Last-Event-ID"]).toBe("2");
    events.say(text(3, "two"));
    await env.pass(16);
    expect(said(thread)).toEqual(["msg_1", "one two"]);
    env.answer(json(SESSION), page([asked, growing("one ", 2)])); // read just before the last event
    await thread.refresh();
    expect(said(thread)).toEqual(["msg_1", "one two"]);
    expect(env.calls.length).toBe(5); // and not followed a second time
  });

  it("shows the stored message once the run has ended", async () => {
    const env = new FakeEnv();
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

  it("reads a waiting run from its beginning: only the journal has the id of the approval", async () => {
    const env = new FakeEnv();
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

  it("replaces a sent message by the server's in one step", async () => {
    const env = new FakeEnv();
    const { thread, outbox } = open(env);
    env.answer(json({ run: { id: "run_1" } }, 202));
    outbox.add("ses_1", { text: "hello", files: [] });
    await env.pass(10);
    const counts: number[] = [];
    const look = () => counts.push(thread.state.get().messages.length + outbox.state.get().length);
    env.answer(json({ ...SESSION, active_run: null }), page([asked]));
    await thread.refresh();
    look();
    expect(counts).toEqual([1]);
    expect(outbox.state.get()).toEqual([]);
  });

  it("keeps older pages on the same branch, and drops them on another", async () => {
    const env = new FakeEnv();
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
    expect(thread.state.get().messages[2]).toBe(before[2]); // the same object: nothing renders again
    env.answer(json(quiet), page([message("x", { parent_id: "y" })], "other"));
    await thread.refresh();
    expect(said(thread)).toEqual(["x"]);
    expect(thread.state.get().older).toBe("other");
  });

  it("does not repeat a failed older page by itself, and drops one of another branch", async () => {
    const env = new FakeEnv();
    const quiet = { ...SESSION, active_run: null };
    const { thread } = open(env);
    env.answer(json(quiet), page([message("c", { parent_id: "b" })], "older"));
    await thread.refresh();
    env.answer(json({}, 503));
    await thread.loadOlder();
    expect(thread.state.get()).toMatchObject({ olderFailed: true, loadingOlder: false });
    env.answer(page([message("b")]));
    const loading = thread.loadOlder();
    thread.state.patch({ older: "other" });
    await loading;
    expect(said(thread)).toEqual(["c"]);
  });

  it("polls while output is being recovered", async () => {
    const env = new FakeEnv();
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

  it("regenerates once on a double click, and with the same key after a lost response", async () => {
    const env = new FakeEnv();
    const { thread } = open(env);
    env.answer(new Error("lost"), json(SESSION), page([asked]));
    const [first, second] = [thread.retry("msg_2"), thread.retry("msg_2")];
    await Promise.all([first, second]);
    await settle();
    env.answer(json({ run: { id: "run_2" } }, 202), json(SESSION), page([asked]));
    await thread.retry("msg_2");
    const sent = env.calls.filter((call) => call.path.endsWith("/retry"));
    expect(sent.map((call) => call.headers["Idempotency-Key"])).toEqual(["key-1", "key-1"]);
    env.answer(json({ run: { id: "run_3" } }, 202), json(SESSION), page([asked]));
    await thread.retry("msg_2");
    expect(env.calls.filter((call) => call.path.endsWith("/retry")).at(-1)?.headers["Idempotency-Key"]).toBe("key-2");
  });

  it("says why it could not be loaded, until it is", async () => {
    const env = new FakeEnv();
    const { thread } = open(env);
    env.answer(new TypeError("Failed to fetch"), new TypeError("Failed to fetch"));
    await thread.refresh();
    expect(thread.state.get()).toMatchObject({ loaded: false, unloaded: UNREACHABLE });
    env.answer(json(SESSION), page([asked]));
    await thread.refresh();
    expect(thread.state.get()).toMatchObject({ loaded: true, unloaded: null });
  });

  it("can stop again after a stop that failed", async () => {
    const env = new FakeEnv();
    const { thread } = open(env);
    env.answer(json(SESSION), page([asked]));
    await thread.refresh();
    const stopping = thread.stop(); // the connection is dead: no answer
    expect(thread.state.get().stopping).toBe("run_1");
    await env.pass(10_000);
    await stopping;
    expect(thread.state.get().stopping).toBeNull();
    expect(thread.state.get().problem).toContain("unreachable");
  });

  it("reports a deleted session", async () => {
    const env = new FakeEnv();
    const { thread } = open(env);
    env.answer(json({ type: "not-found", detail: "gone" }, 404), json({ type: "not-found", detail: "gone" }, 404));
    await thread.refresh();
    expect(thread.state.get().notFound).toBe(true);
  });
});

describe("the change feed", () => {
  it("resumes at the last id, even one without an event, and not while the tab is hidden", async () => {
    const env = new FakeEnv();
    const [first, second] = [line(), line()];
    env.answer((call) => {
      call.signal?.addEventListener("abort", () => first.lose());
      return first.response;
    }, second.response);
    const heard: string[] = [];
    const feed = new ChangeFeed(env, {
      onFrame: (got) => heard.push(got.event),
      onStateChange: (state) => heard.push(state),
      onConnected: () => heard.push("opened"),
      onEnd: () => undefined,
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

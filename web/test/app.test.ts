import { describe, expect, it } from "vitest";
import { App } from "../src/core/app.ts";
import type { Model, Session } from "../src/core/types.ts";
import { FakeEnv, json, line } from "./fake-env.ts";

describe("the app", () => {
  it("polls while event streams are blocked and the rest of the API works, and stops when they are not", async () => {
    const env = new FakeEnv();
    let [blocked, down, reads] = [true, false, 0];
    env.fetch = async (path) => {
      if (down) throw new Error("away");
      if (path === "/api/events") {
        if (blocked) throw new Error("blocked");
        const feed = line();
        feed.say("retry: 1000\n\n");
        return feed.response;
      }
      if (path === "/api/sessions?archived_projects=false") reads++;
      return json({ items: [], next: null, default: null });
    };
    const app = new App(env);
    app.start();
    await env.pass(100);
    expect(app.connection.get()).toBe("lost");
    await env.pass(12_000);
    expect(app.connection.get()).toBe("polling");
    expect(reads).toBeGreaterThan(2);
    down = true;
    await env.pass(5000);
    expect(app.connection.get()).toBe("lost");
    [down, blocked] = [false, false];
    await env.pass(9000);
    expect(app.connection.get()).toBe("online");
    const before = reads;
    await env.pass(20_000);
    expect(reads).toBe(before);
  });

  it("dismisses errors about an unreachable server when it is back, and no others", async () => {
    const env = new FakeEnv();
    let down = true;
    env.fetch = async (path) => {
      if (down) throw new Error("away");
      if (path !== "/api/events") return json({ items: [], next: null, default: null });
      const feed = line();
      feed.say("retry: 1000\n\n");
      return feed.response;
    };
    const app = new App(env);
    app.start();
    await app.sessions.patch("ses_1", { pinned: true });
    expect(app.problem.get()).toContain("unreachable");
    down = false;
    await env.pass(20_000);
    expect(app.problem.get()).toBeNull();
    app.problem.set("Something else.");
    await env.pass(20_000);
    expect(app.problem.get()).toBe("Something else.");
  });

  it("asks the providers again when somebody returns, and not again at once", async () => {
    const env = new FakeEnv();
    const app = new App(env);
    const refreshes = () => env.calls.filter(({ path }) => path.startsWith("/api/models?refresh=true")).length;
    env.hide(true);
    expect(refreshes()).toBe(0);
    env.hide(false);
    app.checkCatalog();
    expect(refreshes()).toBe(1);
    await env.pass(11_000);
    app.checkCatalog();
    expect(refreshes()).toBe(2);
  });

  it.each([
    ["complete", null, false, 1],
    ["complete", null, true, 0],
    ["failed", "unavailable", true, 1],
    ["failed", "unavailable", false, 0],
    ["failed", "bad-request", true, 0],
  ])("asks the providers again when an answer belies the catalog: %s, %s", async (status, code, available, count) => {
    const env = new FakeEnv();
    const app = new App(env);
    app.catalog.patch({ models: [{ id: "mine/one", available } as Model], loaded: true });
    const message = { id: "msg_1", role: "assistant", run_id: "run_1", model: "mine/one", parts: [], last_seq: 1 };
    const error = code && { code, message: "No." };
    env.fetch = async (path, init) => {
      env.calls.push({ path, method: "GET", headers: {}, body: null, signal: init?.signal ?? null });
      if (path.includes("/messages")) return json({ items: [{ ...message, status, error }], next: null });
      return json({ id: "ses_1", title: "x", queued_runs: [], active_run: null });
    };
    app.openThread("ses_1");
    await env.pass(100);
    await app.thread.get()?.refresh();
    expect(env.calls.filter(({ path }) => path.startsWith("/api/models?refresh=true"))).toHaveLength(count);
  });

  it("titles a new chat by its first words until the server names it", async () => {
    const env = new FakeEnv();
    const app = new App(env);
    const session = { id: "ses_1", title: "", pinned: false, archived: false, updated_at: "", settings: null };
    env.answer(json(session, 201));
    app.outbox.addChat({}, { text: `Where is\n the ${"very ".repeat(20)}old harbour?`, files: [] });
    await env.pass(10);
    const title = app.sessions.state.get().items[0]?.title ?? "";
    expect(title).toMatch(/^Where is the very .*very…$/);
    expect(title.length).toBeLessThan(62);
    env.answer(json({ ...session, title: "The harbour" }));
    app.sessions.markChanged("ses_1");
    await env.pass(100);
    expect(app.sessions.state.get().items[0]?.title).toBe("The harbour");
  });

  it("moves a refused message back to the message box, and deletes the chat that it created", async () => {
    const env = new FakeEnv();
    const app = new App(env);
    const session = { id: "ses_1", title: "", pinned: false, archived: false, updated_at: "", settings: null };
    const empty = { ...session, head: null, can_redo: false, active_run: null, queued_runs: [] };
    const refused = () => json({ type: "budget-reached", detail: "Daily limit reached." }, 403);
    const file = { type: "file", file_id: "file_1", name: "a.txt", media_type: "text/plain", size: 1 } as const;
    env.answer(json(session, 201), refused());
    const key = app.outbox.addChat({ model: "a/b", previous_session_id: "ses_0" }, { text: "Hello", files: [file] });
    await env.pass(10);
    env.answer(json(empty), json(null));
    const item = app.outbox.find(key);
    expect(item?.state).toBe("refused");
    expect(item && (await app.takeBack(item))).toBe(true);
    expect(app.drafts.read("new")).toEqual({ text: "Hello", files: [file] });
    expect(app.newChat.choices.get()).toEqual({ model: "a/b" });
    expect(env.calls.at(-1)).toMatchObject({ method: "DELETE", path: "/api/sessions/ses_1" });
    expect(app.outbox.state.get()).toEqual([]);
    expect(app.sessions.state.get().items).toEqual([]);
  });

  it("moves a refused message of a chat back to that chat's box", async () => {
    const env = new FakeEnv();
    const app = new App(env);
    env.answer(json({ type: "budget-reached", detail: "Daily limit reached." }, 403));
    app.drafts.write("ses_1", { text: "Typed since", files: [] });
    const key = app.outbox.add("ses_1", { text: "Hello", files: [] });
    await env.pass(10);
    const item = app.outbox.find(key);
    expect(item && (await app.takeBack(item))).toBe(false);
    expect(app.drafts.read("ses_1").text).toBe("Typed since\n\nHello");
    expect(env.calls).toHaveLength(1);
  });

  it("changes those of several chats that it can, and says which it could not", async () => {
    const env = new FakeEnv();
    const { sessions, problem } = new App(env);
    const chats = ["a", "b", "c"].map((id) => ({ id, title: id.toUpperCase(), archived: true }) as Session);
    const gone = () => json({ type: "not-found", detail: "There is no such chat." }, 404);
    const changed = (id: string) => json({ id, archived: false, title: id, updated_at: "" });
    env.answer(changed("a"), gone(), changed("c"));
    const fieldsOf = ({ title }: Session) => ({ archived: false, project: `of ${title}` });
    const ids = async () => (await sessions.patchAll(chats, fieldsOf)).map(({ id }) => id);
    expect(await ids()).toEqual(["a", "c"]);
    expect(problem.get()).toBe("“B” was not changed. There is no such chat.");
    expect(env.calls[2]?.body).toBe('{"archived":false,"project":"of C"}');
    env.answer(changed("a"), new Error("away"));
    expect(await ids()).toEqual(["a"]);
    expect(problem.get()).toMatch(/^2 chats were not changed. The server is unreachable./);
    expect(env.calls).toHaveLength(5); // not each of them while nothing arrives
  });

  it("shows what was just done for a while, and what was done last", async () => {
    const env = new FakeEnv();
    const { toasts } = new App(env);
    toasts.show("One");
    await env.pass(5000);
    toasts.show("Two");
    await env.pass(5000);
    expect(toasts.state.get()?.text).toBe("Two");
    await env.pass(5000);
    expect(toasts.state.get()).toBeNull();
  });

  it("tells what this page changes on the server, and not what it reads or fails to change", async () => {
    const env = new FakeEnv();
    const { api } = new App(env);
    const written: string[] = [];
    api.onWrite((path) => written.push(path));
    env.answer(json({}), json({}), json({ type: "x", detail: "No." }, 409));
    await api.get("/api/tools");
    await api.post("/api/mcp/a/test");
    await api.post("/api/mcp/b/test").catch(() => undefined);
    expect(written).toEqual(["/api/mcp/a/test"]);
  });
});

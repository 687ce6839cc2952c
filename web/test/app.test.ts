import { describe, expect, it } from "vitest";
import { App } from "../src/core/app.ts";
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
      if (path === "/api/sessions") reads++;
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

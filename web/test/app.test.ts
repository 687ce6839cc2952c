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
});

import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { ChatOutline } from "../src/core/chat-outline.ts";
import { FakeEnv, json, settle } from "./fake-env.ts";

const page = (next: string | null, ...ids: string[]) =>
  json({ items: ids.map((id) => ({ id, role: "user", text: id, created_at: "2026-01-01T00:00:00Z" })), next });

describe("the outline of a chat", () => {
  it("is loaded from its end to its beginning", async () => {
    const env = new FakeEnv();
    const outline = new ChatOutline(new Api(env), "ses_1");
    env.answer(page("older", "c", "d"), page("oldest"), page(null, "a", "b"));
    await outline.load("x y");
    expect(outline.state.get().items.map(({ id }) => id)).toEqual(["a", "b", "c", "d"]);
    expect(outline.state.get().loading).toBe(false);
    expect(env.calls[1]?.path).toBe("/api/sessions/ses_1/outline?query=x+y&cursor=older&limit=200");
  });

  it("is that of the last query, whichever answer comes first", async () => {
    const env = new FakeEnv();
    const outline = new ChatOutline(new Api(env), "ses_1");
    let release: (response: Response) => void = () => undefined;
    env.answer(() => new Promise((done) => (release = done)), page(null, "new"));
    const first = outline.load("old");
    await outline.load("new");
    release(page(null, "old"));
    await first;
    expect(outline.state.get().items.map(({ id }) => id)).toEqual(["new"]);
  });

  it("keeps what it has when the server goes away", async () => {
    const env = new FakeEnv();
    const outline = new ChatOutline(new Api(env), "ses_1");
    env.answer(page("older", "b"), new Error("offline"));
    await outline.load("");
    await settle();
    expect(outline.state.get()).toMatchObject({ items: [{ id: "b" }], loading: false, failed: true });
  });
});

import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { DraftSync, isShared } from "../src/core/draft-sync.ts";
import { Drafts } from "../src/core/drafts.ts";
import { type Call, FakeBrowser, FakeEnv, json } from "./fake-env.ts";

/** A server that has the draft of one chat. */
class Server {
  text = "";
  version = 0;
  saves = 0;

  readonly answer = (call: Call): Response => {
    if (call.method === "PUT") {
      this.saves += 1;
      const seen = call.headers["If-Match"];
      if (seen !== `"${this.version}"`) return json({ type: "version-mismatch", detail: "" }, 412);
      this.put((JSON.parse(call.body ?? "") as { text: string }).text);
    }
    return json({ session_id: "ses_1", text: this.text, version: this.version, updated_at: "" });
  };

  put(text: string): void {
    this.text = text;
    this.version += 1;
  }
}

function openChat(server: Server, env = new FakeEnv()) {
  env.answer(...Array.from({ length: 50 }, () => server.answer));
  const drafts = new Drafts(env);
  const box = { text: drafts.read("ses_1").text };
  const show = (text: string) => type(text);
  const type = (text: string) => {
    box.text = text;
    drafts.write("ses_1", { text, files: [] });
  };
  const sync = new DraftSync(env, new Api(env), drafts, "ses_1", box.text, show);
  sync.read();
  return { env, drafts, box, type, sync };
}

describe("a shared draft", () => {
  it("is that of a chat or of the next new one, and of nothing else", () => {
    expect(["ses_1", "new", "edit.msg_1", "key-1"].map(isShared)).toEqual([true, true, false, false]);
  });

  it("is saved some time after typing, in one request", async () => {
    const server = new Server();
    const { env, type } = openChat(server);
    await env.pass(10);
    for (const text of ["H", "He", "Hello"]) type(text);
    await env.pass(100);
    expect(server.text).toBe("");
    await env.pass(2000);
    expect([server.text, server.saves]).toEqual(["Hello", 1]);
  });

  it("appears on another device, and follows it there", async () => {
    const server = new Server();
    const desk = openChat(server);
    desk.type("From the desk");
    await desk.env.pass(2000);
    const phone = openChat(server);
    await phone.env.pass(10);
    expect(phone.box.text).toBe("From the desk");
    phone.type("From the desk and the phone");
    await phone.env.pass(2000);
    desk.sync.read();
    await desk.env.pass(10);
    expect(desk.box.text).toBe("From the desk and the phone");
    expect(desk.sync.other.get()).toBeNull();
  });

  it("never loses newer text to a tab that was asleep", async () => {
    const server = new Server();
    const desk = openChat(server);
    desk.type("Old");
    await desk.env.pass(2000);
    server.put("Newer, from the phone");
    desk.type("Old and more");
    await desk.env.pass(2000);
    expect(server.text).toBe("Newer, from the phone");
    expect([desk.box.text, desk.sync.other.get()]).toEqual(["Old and more", "Newer, from the phone"]);
    desk.sync.choose("mine");
    await desk.env.pass(10);
    expect(server.text).toBe("Old and more");
    server.put("Newest");
    desk.type("Old and more and more");
    await desk.env.pass(2000);
    desk.sync.choose("other");
    expect([desk.box.text, server.text, desk.sync.other.get()]).toEqual(["Newest", "Newest", null]);
  });

  it("counts as newer if it was typed while the server was away, also after a reload", async () => {
    const server = new Server();
    const browser = new FakeBrowser();
    const before = openChat(server, new FakeEnv(browser));
    before.type("On the server");
    await before.env.pass(2000);
    before.type("On the server, and typed offline");
    before.env.close();
    const after = openChat(server, new FakeEnv(browser));
    await after.env.pass(2000);
    expect([after.box.text, server.text]).toEqual(Array(2).fill("On the server, and typed offline"));
  });

  it("names its version when it is sent, and is emptied if the server has not done that", async () => {
    const server = new Server();
    const { env, drafts, type, sync } = openChat(server);
    await env.pass(10);
    expect(drafts.saved.get("ses_1")).toBeUndefined();
    type("Hello");
    await env.pass(2000);
    expect(drafts.saved.get("ses_1")).toBe(1);
    type("");
    sync.close();
    await env.pass(10);
    expect([server.text, server.version]).toEqual(["", 2]);
    expect(drafts.saved.get("ses_1")).toBeUndefined();
  });

  it("is not saved again after the server has cleared it", async () => {
    const server = new Server();
    const { env, box, type } = openChat(server);
    type("Hello");
    await env.pass(2000);
    type("");
    server.put(""); // the accepted message
    await env.pass(2000);
    type("Next");
    await env.pass(2000);
    expect([server.text, server.version, server.saves, box.text]).toEqual(["Next", 3, 2, "Next"]);
  });

  it("stays in the browser if it is too long for the server", async () => {
    const server = new Server();
    const { env, drafts, type } = openChat(server);
    type("x".repeat(100_001));
    await env.pass(2000);
    expect([server.saves, drafts.read("ses_1").text.length]).toEqual([0, 100_001]);
  });
});

import { describe, expect, it } from "vitest";
import { Api } from "../src/core/api.ts";
import { joinCommand, splitCommand } from "../src/core/command-line.ts";
import { unansweredCalls } from "../src/core/late-approvals.ts";
import { NewChat } from "../src/core/new-chat-choices.ts";
import type { ToolPart } from "../src/core/types.ts";
import { FakeEnv } from "./fake-env.ts";

describe("a command line", () => {
  it.each([
    ["npx -y  @google/gemini-cli --acp", ["npx", "-y", "@google/gemini-cli", "--acp"]],
    [`sh -c "echo 'a b'" ''`, ["sh", "-c", "echo 'a b'", ""]],
    [`say '"hi"'`, ["say", '"hi"']],
  ])("%s is split into words and joined again", (line, words) => {
    expect(splitCommand(line)).toEqual(words);
    expect(splitCommand(joinCommand(words))).toEqual(words);
  });
});

describe("the server's clock", () => {
  it("is read from its responses", async () => {
    const env = new FakeEnv();
    const api = new Api(env);
    const date = new Date(env.now() + 90_000).toUTCString();
    env.answer(new Response("{}", { headers: { Date: date } }));
    await api.get("/api/agents");
    expect(Math.abs(api.serverNow() - env.now() - 90_000)).toBeLessThanOrEqual(1000);
  });
});

describe("calls that nobody answered", () => {
  it("are those that were denied for that reason, until they are allowed", () => {
    const denied: ToolPart = {
      type: "tool",
      call_id: "a",
      name: "x",
      args: {},
      state: "denied",
      result: "",
      is_error: false,
    };
    const parts = [
      "Nobody answered in time, so it was denied.",
      "Deny",
      "Nobody answered in time, so it was denied. You allowed it later.",
    ];
    const found = unansweredCalls(parts.map((result, n) => ({ ...denied, call_id: String(n), result })));
    expect(found.map(({ call_id }) => call_id)).toEqual(["0"]);
  });
});

describe("the choices of a new chat", () => {
  it("survive a reload and are gone once it is sent", () => {
    const env = new FakeEnv();
    new NewChat(env).choose({ agent: "hermes" });
    const reloaded = new NewChat(env);
    reloaded.choose({ cwd: "/srv" });
    expect(reloaded.choices.get()).toEqual({ agent: "hermes", cwd: "/srv" });
    reloaded.clear();
    expect(new NewChat(env).choices.get()).toEqual({});
  });

  it("are none if what was stored cannot be read", () => {
    const env = new FakeEnv();
    env.tabStorage.setItem("holdfast.new-chat", "{");
    expect(new NewChat(env).choices.get()).toEqual({});
  });
});

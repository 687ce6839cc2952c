import { describe, expect, it } from "vitest";
import { tokensPerSecond } from "../src/core/answer-speed.ts";
import type { ToolPart } from "../src/core/types.ts";

const usage = { input_tokens: 9, output_tokens: 50, cost: null, cached_tokens: null, reasoning_tokens: null };
const tool: ToolPart = {
  type: "tool",
  call_id: "c",
  name: "shell",
  args: {},
  result: null,
  is_error: false,
  state: "done",
  output: "",
  duration_ms: 900,
};

describe("tokens per second", () => {
  it("count the whole answer", () => {
    expect(tokensPerSecond({ parts: [{ type: "text", text: "Hi" }], usage, duration_ms: 2000 })).toBe(25);
  });

  it("are unknown with tools, without a duration and without tokens", () => {
    expect(tokensPerSecond({ parts: [tool], usage, duration_ms: 2000 })).toBeNull();
    expect(tokensPerSecond({ parts: [], usage, duration_ms: null })).toBeNull();
    expect(tokensPerSecond({ parts: [], usage: { ...usage, output_tokens: 0 }, duration_ms: 2000 })).toBeNull();
    expect(tokensPerSecond({ parts: [], usage: null, duration_ms: 2000 })).toBeNull();
  });
});

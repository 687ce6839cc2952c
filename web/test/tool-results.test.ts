import { describe, expect, it } from "vitest";
import { failedExitCode, isQueued, repeatsOutput, toolLabel } from "../src/core/tool-results.ts";
import type { ToolPart } from "../src/core/types.ts";

const part = (fields: Partial<ToolPart>): ToolPart => ({
  type: "tool",
  call_id: "c1",
  name: "shell",
  args: {},
  state: "done",
  result: null,
  is_error: false,
  output: "",
  ...fields,
});

describe("the result of a tool call", () => {
  it("names a tool of an MCP server without the separator", () => {
    expect(toolLabel("tides__high_tide")).toBe("high_tide (tides)");
    expect(toolLabel("read_file")).toBe("read_file");
    expect(toolLabel("__init__")).toBe("__init__");
  });

  it("waits for the calls before it, also after an approval", () => {
    const calls = (...states: ToolPart["state"][]) => states.map((state) => part({ state }));
    expect(isQueued(calls("running", "not_run"), 1)).toBe(true);
    expect(isQueued(calls("running", "pending"), 1)).toBe(true);
    expect(isQueued(calls("pending", "pending"), 0)).toBe(true);
    expect(isQueued(calls("done", "pending"), 1)).toBe(false); // the model may be writing its arguments
    expect(isQueued([...calls("not_run"), { type: "text", text: "Well." }], 0)).toBe(false);
    expect(isQueued(calls("done"), 0)).toBe(false);
  });

  it("says that a command failed by its exit code, and not by words that it printed", () => {
    expect(failedExitCode(part({ result: "oops\n[exit code 1]" }))).toBe(1);
    expect(failedExitCode(part({ result: "[exit code -9]" }))).toBe(-9);
    expect(failedExitCode(part({ result: "[exit code 1]\n[exit code 0]" }))).toBeNull();
    expect(failedExitCode(part({ name: "fetch", result: "[exit code 1]" }))).toBeNull();
    expect(failedExitCode(part({ state: "running", result: "[exit code 1]" }))).toBeNull();
  });

  it("is shown once if it repeats what was printed", () => {
    expect(repeatsOutput(part({ output: "one\n", result: "one\n[exit code 0]" }))).toBe(true);
    expect(repeatsOutput(part({ output: "one\ntwo\n", result: "two\n[exit code 0]" }))).toBe(false);
    expect(repeatsOutput(part({ state: "unknown", output: "one", result: "one" }))).toBe(false);
  });
});

import { describe, expect, it } from "vitest";
import { failedExitCode, repeatsOutput, toolLabel } from "../src/core/tool-results.ts";
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

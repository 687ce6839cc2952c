import { describe, expect, it } from "vitest";
import { listArguments, summarizeArguments } from "../src/core/tool-arguments.ts";

describe("the arguments of a tool call", () => {
  it("show text as it is, and everything else as JSON", () => {
    const command = 'cat <<EOF\n"quoted"\nEOF';
    expect(listArguments({ command, timeout: 5, env: { A: "b" } })).toEqual([
      { name: "command", text: command },
      { name: "timeout", text: "5" },
      { name: "env", text: '{\n  "A": "b"\n}' },
    ]);
    expect(listArguments("half of {")).toEqual([{ name: null, text: "half of {" }]);
    expect(listArguments(null)).toEqual([]);
    expect(listArguments({})).toEqual([]);
  });

  it("are summarized in one line that says whether there is more", () => {
    expect(summarizeArguments({ command: "ls" })).toBe("ls");
    expect(summarizeArguments({ command: "\nmake \nmake test" })).toBe("make…");
    expect(summarizeArguments({ q: "x".repeat(100) })).toBe(`${"x".repeat(80)}…`);
    expect(summarizeArguments({ flags: [], n: 7 })).toBe("7");
    expect(summarizeArguments(null)).toBe("");
  });
});

import { describe, expect, it } from "vitest";
import { withoutMarkdown } from "../src/core/without-markdown.ts";

describe("Markdown as plain words", () => {
  it("keeps the words and leaves out the marks", () => {
    expect(withoutMarkdown("# Tides\n\n- **High** at `06:12`, see [the table](https://a.example/x)\n> *soon*")).toBe(
      "Tides\n\nHigh at 06:12, see the table\nsoon",
    );
    expect(withoutMarkdown("```py\nprint(1)\n```")).toBe("print(1)");
    expect(withoutMarkdown("| a | b |\n|---|---|\n| 1 | 2 |")).toBe("a, b\n\n1, 2");
  });

  it("leaves ordinary text alone", () => {
    for (const text of ["2 * 3 * 4", "snake_case_name", "a - b", "[1] is a note", "5 > 3", "C# and F#"]) {
      expect(withoutMarkdown(text)).toBe(text);
    }
  });
});

import { describe, expect, it } from "vitest";
import { quoted } from "../src/core/quote.ts";

describe("a quotation", () => {
  it("keeps lines and paragraphs", () => {
    expect(quoted("  one  \ntwo\r\n\n\n\nthree\n")).toBe("> one\n> two\n>\n> three\n\n");
  });
});

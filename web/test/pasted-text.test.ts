import { describe, expect, it } from "vitest";
import { isLongPaste, pastedFileName } from "../src/core/pasted-text.ts";

describe("pasted text", () => {
  it("is long by its characters or by its lines", () => {
    expect(isLongPaste("a".repeat(4999))).toBe(false);
    expect(isLongPaste("a".repeat(5000))).toBe(true);
    expect(isLongPaste("line\n".repeat(98))).toBe(false);
    expect(isLongPaste("line\n".repeat(99))).toBe(true);
  });

  it("gets a name that no other attachment has", () => {
    expect(pastedFileName(["notes.txt"])).toBe("Pasted text.txt");
    expect(pastedFileName(["Pasted text.txt", "Pasted text 2.txt"])).toBe("Pasted text 3.txt");
  });
});

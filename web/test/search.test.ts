import { describe, expect, it } from "vitest";
import { searchWords, startNearMatch, wordPattern } from "../src/core/search.ts";

describe("a search", () => {
  it("finds its words literally, in any case", () => {
    expect(searchWords("  a.b  C ")).toEqual(["a.b", "C"]);
    expect("axb A.B c".match(wordPattern(["a.b", "C"]) ?? /x/)).toEqual(["A.B", "c"]);
    expect("a-b [x]".match(wordPattern(["a-b", "[x]"]) ?? /x/)).toEqual(["a-b", "[x]"]);
    expect(wordPattern([])).toBeNull();
  });

  it("shows an excerpt from shortly before the first match", () => {
    const excerpt = `${"many words before it ".repeat(5)}the harbour master`;
    expect(startNearMatch(excerpt, ["harbour"])).toBe("…words before it the harbour master");
    expect(startNearMatch("the harbour", ["harbour"])).toBe("the harbour");
    expect(startNearMatch(excerpt, ["absent"])).toBe(excerpt);
  });
});

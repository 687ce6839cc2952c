import { describe, expect, test } from "vitest";
import { mentionAt, mentionOf } from "../src/core/mentions.ts";

describe("mentions of files", () => {
  test("are found before the cursor, in quotes too", () => {
    expect(mentionAt("see @src/ma", 11)).toEqual({ start: 4, query: "src/ma" });
    expect(mentionAt("@", 1)).toEqual({ start: 0, query: "" });
    expect(mentionAt('see @"my no', 11)).toEqual({ start: 4, query: "my no" });
    expect(mentionAt("see @src now", 8)).toEqual({ start: 4, query: "src" });
  });

  test("are not found in addresses, after a space, or far back", () => {
    expect(mentionAt("me@home", 7)).toBeNull();
    expect(mentionAt("@src now", 8)).toBeNull();
    expect(mentionAt('@"my file" x', 12)).toBeNull();
    expect(mentionAt(`@${"x".repeat(400)}`, 401)).toBeNull();
  });

  test("are written so that they can be read again", () => {
    expect(mentionOf("a/b.txt", false)).toBe("@a/b.txt ");
    expect(mentionOf("a b.txt", false)).toBe('@"a b.txt" ');
    expect(mentionOf("a b", true)).toBe('@"a b/');
    expect(mentionOf("100%25", false)).toBe("@100% ");
    expect(mentionAt(mentionOf("a b", true), 6)).toEqual({ start: 0, query: "a b/" });
  });
});

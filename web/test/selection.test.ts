import { describe, expect, it } from "vitest";
import { toggleSelected } from "../src/core/selection.ts";

const ORDER = ["a", "b", "c", "d", "e"];
const toggle = (selected: string[], id: string, anchor: string | null = null) =>
  [...toggleSelected(new Set(selected), id, ORDER, anchor)].sort().join("");

describe("choosing several items", () => {
  it("adds and removes one", () => {
    expect(toggle(["a"], "c")).toBe("ac");
    expect(toggle(["a", "c"], "a")).toBe("c");
  });

  it("adds and removes all between two, in both directions", () => {
    expect(toggle(["b"], "d", "b")).toBe("bcd");
    expect(toggle(["d"], "b", "d")).toBe("bcd");
    expect(toggle(["a", "b", "c", "d"], "d", "b")).toBe("a");
  });

  it("treats an item alone when the other is no longer in the list", () => {
    expect(toggle(["z"], "c", "z")).toBe("cz");
    expect(toggle([], "z", "a")).toBe("z");
  });
});

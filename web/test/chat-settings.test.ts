import { describe, expect, it } from "vitest";
import { leftOut, rejectedSetting } from "../src/core/chat-settings.ts";
import { parseNumber } from "../src/ui/widgets/NumberField.tsx";

describe("settings of a chat", () => {
  it("are left out by null, and by a value of their own where there is a default", () => {
    expect(leftOut("temperature", { temperature: 0.3 })).toEqual({ temperature: "model_default" });
    expect(leftOut("temperature", { top_p: 0.3 })).toEqual({ temperature: null });
    expect(leftOut("temperature", null)).toEqual({ temperature: null });
  });

  it("are named by the code of the failure", () => {
    expect(rejectedSetting("unsupported-top_p")).toBe("top_p");
    expect(rejectedSetting("unsupported-tools")).toBeNull();
    expect(rejectedSetting("bad-request")).toBeNull();
    expect(rejectedSetting(undefined)).toBeNull();
  });
});

describe("a typed number", () => {
  const range = { min: 0, max: 2, step: 0.1, start: 0 };
  it.each([
    ["0,7", 0.7],
    [" 1. ", 1],
    [".5", 0.5],
    ["", null],
    ["2.1", undefined],
    ["-1", undefined],
    ["1e1", undefined],
    ["0.7.1", undefined],
    ["warm", undefined],
  ])("%j is %s", (typed, value) => expect(parseNumber(typed, range)).toBe(value));

  it("is whole where it has to be", () => {
    expect(parseNumber("1.5", { ...range, whole: true })).toBeUndefined();
    expect(parseNumber("2", { ...range, whole: true })).toBe(2);
  });
});

import type { KeyboardEvent } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isSubmitKey } from "../src/ui/widgets/keyboard.ts";

const key = (fields: object) =>
  ({ key: "Enter", shiftKey: false, ctrlKey: false, metaKey: false, nativeEvent: {}, ...fields }) as KeyboardEvent;
const useTouch = (touch: boolean) => vi.stubGlobal("matchMedia", () => ({ matches: touch }));

describe("the key that sends", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is Enter, but not with Shift or while composing", () => {
    useTouch(false);
    expect(isSubmitKey(key({}))).toBe(true);
    expect(isSubmitKey(key({ shiftKey: true }))).toBe(false);
    expect(isSubmitKey(key({ nativeEvent: { isComposing: true } }))).toBe(false);
    expect(isSubmitKey(key({ key: "a" }))).toBe(false);
  });

  it("is not Enter alone on a touch keyboard, where it starts a new line", () => {
    useTouch(true);
    expect(isSubmitKey(key({}))).toBe(false);
    expect(isSubmitKey(key({ ctrlKey: true }))).toBe(true);
  });
});

import type { KeyboardEvent } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isSubmitKey, sendMode } from "../src/ui/widgets/keyboard.ts";

const key = (fields: object) =>
  ({ key: "Enter", shiftKey: false, ctrlKey: false, metaKey: false, nativeEvent: {}, ...fields }) as KeyboardEvent;
const useTouch = (touch: boolean) => vi.stubGlobal("matchMedia", () => ({ matches: touch }));

describe("the keys that do more than queue a message", () => {
  it("are Alt+Enter to add it to the answer, and Ctrl+Shift+Enter to stop the answer", () => {
    expect(sendMode(key({ altKey: true }), true)).toBe("steer");
    expect(sendMode(key({ altKey: true }), false)).toBe(null);
    expect(sendMode(key({ ctrlKey: true, shiftKey: true }), false)).toBe("interrupt");
    expect(sendMode(key({ metaKey: true, shiftKey: true }), false)).toBe("interrupt");
    for (const other of [{}, { shiftKey: true }, { ctrlKey: true }, { altKey: true, shiftKey: true }, { key: "a" }]) {
      expect(sendMode(key(other), true)).toBe(null);
    }
    expect(sendMode(key({ altKey: true, nativeEvent: { isComposing: true } }), true)).toBe(null);
  });
});

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

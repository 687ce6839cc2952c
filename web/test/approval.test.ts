import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { prerender } from "react-dom/static";
import { describe, expect, it, vi } from "vitest";
import { fold } from "../src/core/fold.ts";
import { escapeInvisible } from "../src/core/invisible-characters.ts";
import type { Json } from "../src/core/types.ts";
import Approval from "../src/ui/chat/Approval.tsx";
import { MessageParts } from "../src/ui/chat/MessageParts.tsx";

vi.mock("../src/ui/router.tsx", () => ({ Link: "a" })); // needs a browser

const HOSTILE = "ls \u202e# txt \u2066; rm -rf";

function shown(data: object): string {
  const event = { approval_id: "a", call_id: "c", name: "shell", args: {}, reason: "Why.", ...data };
  const { approval } = fold([{ seq: 1, type: "approval.requested", data: event }]);
  if (!approval) throw new Error("no approval");
  return renderToStaticMarkup(createElement(Approval, { request: approval, onDecide: () => Promise.resolve(true) }));
}

describe("an approval", () => {
  it("shows a command with its line breaks", () => {
    expect(shown({ args: { command: "cd /tmp\nls -l" } })).toContain(">cd /tmp\nls -l</pre>");
  });

  it("offers to allow a tool always only if that has an effect", () => {
    expect(shown({})).toContain("Always allow");
    expect(shown({ always: false })).not.toContain("Always allow");
    expect(shown({ always: false })).toContain("Allow for this chat");
  });

  it("shows characters that are invisible or change the order of others", () => {
    const html = shown({ name: "sh\u200bell", args: { command: HOSTILE }, reason: "\u2067Why." });
    expect(html).not.toMatch(/[\u200b\u202e\u2066\u2067]/);
    expect(html).toContain("sh\\u200bell");
    expect(html).toContain("ls \\u202e# txt \\u2066; rm -rf");
    expect(html).toContain("\\u2067Why.");
  });
});

describe("a tool card", () => {
  /** With what is loaded on demand. */
  const html = async (args: Json, result: Json) => {
    const part = { type: "tool", call_id: "c", name: "shell", args, state: "done", result, is_error: true } as const;
    const { prelude } = await prerender(createElement(MessageParts, { parts: [part], growing: false, plain: false }));
    return new Response(prelude).text();
  };

  it.each([
    ["arguments and their summary", { command: HOSTILE }, "", 2],
    ["a result", {}, HOSTILE, 1],
    ["an edit", { old: HOSTILE, new: "", path: HOSTILE }, "", 3],
  ])("shows invisible characters of %s", async (_, args, result, times) => {
    const shown = await html(args, result);
    expect(shown.split("\\u202e").length - 1).toBe(times);
    expect(shown).not.toMatch(/[\u202e\u2066]/);
  });
});

describe("invisible characters", () => {
  it.each([
    ["a\u202e\u2066\u2069\u200e\u200f\u061cb", "a\\u202e\\u2066\\u2069\\u200e\\u200f\\u061cb"],
    ["r\u200dm \u200b\ufeff\u00ad\u3164", "r\\u200dm \\u200b\\ufeff\\u00ad\\u3164"],
    ["\u001b[2K\rx\u0085\u2028", "\\u001b[2K\\u000dx\\u0085\\u2028"],
    ["\u{e0041}", "\\u{e0041}"],
  ])("become escapes", (text, escaped) => {
    expect(escapeInvisible(text)).toBe(escaped);
  });

  it("that texts need stay", () => {
    const text = "a\tb\r\nc\n 👩\u200d💻 ❤\ufe0f نمی\u200cخواهم שלום é";
    expect(escapeInvisible(text)).toBe(text);
  });
});

describe("an agent's approval", () => {
  it("offers the agent's own options and says when it denies by itself", () => {
    const options = [{ id: "o", name: "Deny always", decision: "deny" }];
    const html = shown({ options, expires_at: Date.now() + 59_000 });
    expect(html).toContain("Deny always");
    expect(html).not.toContain("Allow once");
    expect(html).toContain("59 s left to answer");
  });
});

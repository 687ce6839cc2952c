import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { fold } from "../src/core/fold.ts";
import { Approval } from "../src/ui/chat/Approval.tsx";

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
});

describe("an agent's approval", () => {
  it("offers the agent's own options and says when it denies by itself", () => {
    const options = [{ id: "o", name: "Deny always", decision: "deny" }];
    const html = shown({ options, expires_at: Date.now() + 59_000 });
    expect(html).toContain("Deny always");
    expect(html).not.toContain("Allow once");
    expect(html).toMatch(/Denied in 59 s/);
  });
});

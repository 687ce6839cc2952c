import { describe, expect, it } from "vitest";
import type { CreatedShareResponse } from "../src/core/api-types.ts";
import { describeIncluded, isLocalAddress, shareAddress } from "../src/core/share-links.ts";

const SHARE: CreatedShareResponse = {
  id: "share_1",
  session_id: "ses_1",
  kind: "text",
  title: "",
  reasoning: false,
  tools: false,
  files: false,
  size: 3,
  created_at: "2026-11-19T00:00:00Z",
  expires_at: null,
  last_opened_at: null,
  path: "/share/token",
  root_path: "/holdfast",
};

describe("share links", () => {
  it("have the address that the browser used and the path of the proxy", () => {
    expect(shareAddress("https://chat.example.com", SHARE)).toBe("https://chat.example.com/holdfast/share/token");
  });

  it("say what they contain besides the messages", () => {
    expect(describeIncluded(SHARE)).toBe("");
    expect(describeIncluded({ ...SHARE, reasoning: true, files: true })).toBe("With reasoning, files");
  });

  it("know addresses that only this machine can open", () => {
    for (const name of ["localhost", "a.localhost", "127.0.0.1", "[::1]"]) expect(isLocalAddress(name)).toBe(true);
    for (const name of ["chat.example.com", "10.0.0.1", "localhost.example"]) expect(isLocalAddress(name)).toBe(false);
  });
});

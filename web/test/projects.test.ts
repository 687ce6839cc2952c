import { describe, expect, it } from "vitest";
import type { ChatSettings } from "../src/core/chat-settings.ts";
import { inheritedSettings, type Project } from "../src/core/projects.ts";

const PROJECT: Project = {
  id: "prj_1",
  name: "Harbor",
  color: null,
  instructions: null,
  agent: null,
  model: null,
  memory: null,
  temperature: null,
  top_p: null,
  max_tokens: null,
  reasoning_effort: null,
  use_tools: null,
  archived: false,
  chats: 0,
  files: [],
  version: 1,
  created_at: "2026-11-19T12:00:00Z",
  updated_at: "2026-11-19T12:00:00Z",
};
const DEFAULTS: ChatSettings = { system: "Be brief.", temperature: 0.7, use_tools: true, memory: "none" };

describe("what a chat of a project inherits", () => {
  it("is the defaults without a project, or where the project sets nothing", () => {
    expect(inheritedSettings(null, DEFAULTS)).toBe(DEFAULTS);
    expect(inheritedSettings(PROJECT, DEFAULTS)).toMatchObject(DEFAULTS);
    expect(inheritedSettings(PROJECT, null)).toMatchObject({ system: null, temperature: null });
  });

  it("is what the project sets, zero and false among it", () => {
    const project = { ...PROJECT, instructions: "Be long.", temperature: 0, use_tools: false };
    expect(inheritedSettings(project, DEFAULTS)).toMatchObject({
      system: "Be long.",
      temperature: 0,
      use_tools: false,
    });
  });

  it("has memory on or off as the project says", () => {
    const memory = (choice: Project["memory"], off: string | null) =>
      inheritedSettings({ ...PROJECT, memory: choice }, { memory: off })?.memory;
    expect(memory("none", null)).toBe("none");
    expect(memory("project", "none")).toBe("default");
    expect(memory("shared", "none")).toBe("default");
    expect(memory(null, "none")).toBe("none");
  });
});

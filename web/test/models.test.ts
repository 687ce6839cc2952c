import { describe, expect, it } from "vitest";
import { isConnected, isUsable, modelLabel, modelName, offeredModels } from "../src/core/models.ts";
import type { Model } from "../src/core/types.ts";

const model = (id: string, fields: Partial<Model> = {}): Model => ({
  id,
  name: `The ${id}`,
  provider: id.split("/")[0] ?? "",
  context: null,
  abilities: [],
  settings: [],
  available: true,
  reason: null,
  ...fields,
});
const demo = model("demo/scripted");
const tide = model("server/tide");

describe("the models that are offered", () => {
  it("include the demo only where nothing else can answer, or where it is in use", () => {
    expect(offeredModels([tide, demo])).toEqual([tide]);
    expect(offeredModels([tide, demo], demo.id)).toEqual([tide, demo]);
    const down = model("server/tide", { available: false });
    expect(offeredModels([down, demo])).toEqual([down, demo]);
  });
});

describe("the name of a model", () => {
  it("is its id where it is not listed", () => {
    expect(modelName([tide], tide.id)).toBe("The server/tide");
    expect(modelName([tide], "program/own")).toBe("program/own");
  });

  it("has the provider beside it, unless the model runs inside Holdfast", () => {
    expect(modelLabel(tide)).toBe("The server/tide (server)");
    expect(modelLabel(model("local/small"))).toBe("The local/small");
  });
});

describe("a model", () => {
  it("can be used unless it is known to be unavailable or its provider is gone", () => {
    const down = model("server/ebb", { available: false });
    const usable = (id: string) => isUsable([tide, down], id);
    expect([tide.id, "server/unlisted", down.id, "gone/tide"].map(usable)).toEqual([true, true, false, false]);
    expect([down.id, "gone/tide", undefined].map((id) => isConnected([down], id))).toEqual([true, false, false]);
  });
});

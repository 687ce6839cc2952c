import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrokenSequenceError, EMPTY, fold } from "../src/core/fold.ts";
import type { RunEvent } from "../src/core/types.ts";

const FIXTURES = join(import.meta.dirname, "../../tests/fixtures");
const NAMES = readdirSync(FIXTURES)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => name.slice(0, -6));

const journal = (name: string): RunEvent[] =>
  readFileSync(join(FIXTURES, `${name}.jsonl`), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as RunEvent);
const expected = (name: string) => JSON.parse(readFileSync(join(FIXTURES, `${name}.parts.json`), "utf8")) as unknown;

describe("the fold", () => {
  it("has recorded journals to test on", () => expect(NAMES.length).toBeGreaterThanOrEqual(8));

  it.each(NAMES)("makes the same parts of %s as the server, at once and event by event", (name) => {
    expect(fold(journal(name)).parts).toStrictEqual(expected(name));
    let grown = EMPTY;
    for (const event of journal(name)) grown = fold([event], grown);
    expect(grown.parts).toStrictEqual(expected(name));
  });

  it.each(NAMES)("of a prefix of %s and then the rest equals the fold of all, and mutates nothing", (name) => {
    const events = journal(name);
    const whole = fold(events);
    for (let cut = 0; cut <= events.length; cut++) {
      const prefix = fold(events.slice(0, cut));
      const copy = structuredClone(prefix);
      expect(fold(events.slice(cut), prefix)).toStrictEqual(whole);
      expect(prefix).toStrictEqual(copy);
    }
  });

  it("rejects a gap, a repeat and anything after the end", () => {
    const events = journal("text-only");
    expect(() => fold(events.slice(1))).toThrow(BrokenSequenceError);
    expect(() => fold([events[0] as RunEvent, events[0] as RunEvent])).toThrow(BrokenSequenceError);
    const whole = fold(events);
    expect(() => fold([{ seq: whole.lastSeq + 1, type: "text.delta", data: { text: "x" } }], whole)).toThrow(
      BrokenSequenceError,
    );
  });
});

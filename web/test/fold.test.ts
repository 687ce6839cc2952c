import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrokenSequence, EMPTY, fold } from "../src/core/fold.ts";
import type { Entry } from "../src/core/wire.ts";

const FIXTURES = join(import.meta.dirname, "../../tests/fixtures");
const NAMES = readdirSync(FIXTURES)
  .filter((name) => name.endsWith(".jsonl"))
  .map((name) => name.slice(0, -6));

const journal = (name: string): Entry[] =>
  readFileSync(join(FIXTURES, `${name}.jsonl`), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry);
const expected = (name: string) => JSON.parse(readFileSync(join(FIXTURES, `${name}.parts.json`), "utf8")) as unknown;

describe("the fold", () => {
  it("has journals to be tested on", () => expect(NAMES.length).toBeGreaterThanOrEqual(8));

  it.each(NAMES)("makes of %s the parts that the server makes, in one go and event by event", (name) => {
    expect(fold(journal(name)).parts).toStrictEqual(expected(name));
    let grown = EMPTY;
    for (const entry of journal(name)) grown = fold([entry], grown);
    expect(grown.parts).toStrictEqual(expected(name));
  });

  it.each(NAMES)("of a prefix of %s and then the rest equals the whole, and changes nothing in place", (name) => {
    const entries = journal(name);
    const whole = fold(entries);
    for (let cut = 0; cut <= entries.length; cut++) {
      const prefix = fold(entries.slice(0, cut));
      const copy = structuredClone(prefix);
      expect(fold(entries.slice(cut), prefix)).toStrictEqual(whole);
      expect(prefix).toStrictEqual(copy);
    }
  });

  it("refuses a gap, a repeat and anything after the end", () => {
    const entries = journal("text-only");
    expect(() => fold(entries.slice(1))).toThrow(BrokenSequence);
    expect(() => fold([entries[0] as Entry, entries[0] as Entry])).toThrow(BrokenSequence);
    const whole = fold(entries);
    expect(() => fold([{ seq: whole.lastSeq + 1, type: "text.delta", data: { text: "x" } }], whole)).toThrow(
      BrokenSequence,
    );
  });
});

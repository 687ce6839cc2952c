import { expect, test } from "vitest";
import {
  compareTexts,
  fromTextField,
  indent,
  indentationOf,
  lineEndingsOf,
  outdent,
  type TextEdit,
  toTextField,
} from "../src/core/text-editing.ts";

const apply = (text: string, edit: TextEdit) => {
  const result = text.slice(0, edit.from) + edit.text + text.slice(edit.to);
  return `${result.slice(0, edit.start)}[${result.slice(edit.start, edit.end)}]${result.slice(edit.end)}`;
};

test("Tab inserts an indentation or indents the selected lines", () => {
  expect(apply("ab", indent("ab", 1, 1, "  "))).toBe("a  []b");
  expect(apply("a\n\nb\nc", indent("a\n\nb\nc", 0, 4, "\t"))).toBe("\t[a\n\n\tb]\nc");
  expect(apply("a\nb", indent("a\nb", 0, 2, "  "))).toBe("  [a\n]b"); // the second line is not selected
});

test("Shift+Tab removes at most one indentation of each line", () => {
  expect(apply("    a", outdent("    a", 5, 5, "  "))).toBe("  a[]");
  expect(apply("\ta\n b\nc", outdent("\ta\n b\nc", 0, 7, "\t"))).toBe("[a\nb\nc]");
  expect(apply("a", outdent("a", 0, 0, "  "))).toBe("[]a");
});

test("a file keeps its own indentation", () => {
  expect(indentationOf("def f():\n    return 1\n")).toBe("    ");
  expect(indentationOf("a:\n\tb\n")).toBe("\t");
  expect(indentationOf("plain")).toBe("  ");
});

test("line endings come back as they were", () => {
  for (const text of ["a\nb\n", "a\r\nb\r\n", "", "one line"]) {
    expect(fromTextField(toTextField(text), lineEndingsOf(text))).toBe(text);
    expect(lineEndingsOf(text).mixed).toBe(false);
  }
  expect(lineEndingsOf("a\r\nb\r\nc\n")).toEqual({ ending: "\r\n", mixed: true });
  expect(lineEndingsOf("a\rb")).toEqual({ ending: "\n", mixed: true });
});

test("two versions are compared by what they begin and end with", () => {
  const [mine, theirs] = compareTexts("a\nb\nc", "a\nx\ny\nc");
  expect(mine).toEqual({ before: "a", changed: "b", after: "c" });
  expect(theirs).toEqual({ before: "a", changed: "x\ny", after: "c" });
  const [same] = compareTexts("a\na", "a\na\na");
  expect(same.changed).toBe("");
});

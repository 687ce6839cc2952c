import { expect, test } from "vitest";
import { languageOf, parseTable } from "../src/core/file-views.ts";
import { breadcrumbs, parentOf, pathInWorkspace, workspaceAddress } from "../src/core/workspace.ts";

test.each([
  ["src/main.py", "src/main.py"],
  ["./src//main.py", "src/main.py"],
  ["/home/p/src/main.py:12", "src/main.py"],
  ["/home/p/src/main.py:12:5", "src/main.py"],
  ["file:///home/p/a.txt", "a.txt"],
  ["100% done.txt", "100%25 done.txt"],
  ["line\nbreak", "line%0Abreak"],
  ["größe.txt", "größe.txt"],
  ["/home/p", null],
  ["/home/pq/a.txt", null],
  ["/etc/passwd", null],
  ["../a", null],
  ["a/../b", null],
  ["", null],
])("the path of %j in /home/p is %j", (named, path) => {
  expect(pathInWorkspace(named, "/home/p")).toBe(path);
});

test("an address leaves out what is not given", () => {
  const address = workspaceAddress("ses_1", "entries", { path: "a b/100%25", hidden: false, cursor: null, limit: 5 });
  expect(address).toBe("/api/sessions/ses_1/workspace/entries?path=a+b%2F100%2525&limit=5");
  expect(workspaceAddress("ses_1", "")).toBe("/api/sessions/ses_1/workspace");
});

test("a path leads to its directories", () => {
  expect(breadcrumbs("a/b")).toEqual([
    { name: "a", path: "a" },
    { name: "b", path: "a/b" },
  ]);
  expect(breadcrumbs("")).toEqual([]);
  expect([parentOf("a/b/c"), parentOf("a")]).toEqual(["a/b", ""]);
});

test.each([
  [
    "a,b\n1,2\n",
    [
      ["a", "b"],
      ["1", "2"],
    ],
  ],
  [
    '"x, ""y""",2\r\n"two\nlines",3',
    [
      ['x, "y"', "2"],
      ["two\nlines", "3"],
    ],
  ],
  [
    "a,\n,b\n",
    [
      ["a", ""],
      ["", "b"],
    ],
  ],
  ["", []],
  ["one", [["one"]]],
])("the table of %j", (text, rows) => {
  expect(parseTable(text, ",", 10, 10)).toEqual({ rows, cut: false });
});

test("a table is cut at its limits, and quotes that make no sense stay as they are", () => {
  expect(parseTable("1\n2\n3\n", ",", 2, 9)).toEqual({ rows: [["1"], ["2"]], cut: true });
  expect(parseTable("1,2,3\n", ",", 9, 2)).toEqual({ rows: [["1", "2"]], cut: true });
  expect(parseTable('a\n"b"c\n"never closed', ",", 9, 9).rows).toEqual([["a"], ['"b"c'], ['"never closed']]);
});

test("a large table takes time in proportion to its size", () => {
  const started = performance.now();
  parseTable('"'.repeat(500_000), ",", 500, 50);
  parseTable(",".repeat(500_000), ",", 500, 50);
  parseTable("\n".repeat(500_000), ",", 500, 50);
  expect(performance.now() - started).toBeLessThan(2000);
});

test("languages are known by their names", () => {
  expect(["a.py", "b.TSX", "Makefile", "c.unknown", "none"].map(languageOf)).toEqual([
    "python",
    "typescript",
    "makefile",
    "",
    "",
  ]);
});

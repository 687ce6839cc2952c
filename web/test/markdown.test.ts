import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it, vi } from "vitest";
import { extractFormulas } from "../src/core/formulas.ts";
import { FrameSlots } from "../src/core/iframe-limit.ts";
import { pauseBetweenRenders, readFence, splitBlocks } from "../src/core/markdown-blocks.ts";
import { Definitions } from "../src/core/markdown-definitions.ts";
import { createHighlight } from "../src/ui/markdown/highlight.ts";
import Markdown from "../src/ui/markdown/Markdown.tsx";
import { createRenderFormula } from "../src/ui/markdown/render-formula.ts";

const { renderTex } = vi.hoisted(() => ({ renderTex: vi.fn() }));
vi.mock("../src/ui/theme.ts", () => ({ useDarkTheme: () => false }));
vi.mock("katex", () => ({ default: { render: renderTex } }));

function render(text: string): string {
  const blocks = splitBlocks(text);
  const definitions = new Definitions(blocks);
  return blocks
    .map(({ text, kind, labels }) => {
      try {
        return renderToStaticMarkup(
          createElement(Markdown, { text, kind, definitions: definitions.neededBy(labels), growing: true }),
        );
      } catch (error) {
        if (error instanceof RangeError) return text; // the page shows it as text
        throw error;
      }
    })
    .join("");
}

const formulasOf = (text: string) => extractFormulas(text).formulas.map((formula) => formula.tex);

describe("formulas", () => {
  it.each([
    ["$5 or $10", []],
    ["$HOME:$PATH, $HOME $PATH, $" + "{A}$" + "{B}", []],
    ["US$5 and A$7", []],
    ["`grep '\\(foo\\)'` and `$a` or `b$`", []],
    ["```sh\necho $a$\n```", []],
    ["\\$a$ and \\\\(b\\\\)", []],
    ["\\[1\\] Smith and \\[link\\](x)", []],
    ["$x$ costs $5, not $y$.", ["x", "y"]],
    ["**$a_1$** and \\(b*c*d\\)", ["a_1", "b*c*d"]],
    ["text \\[ a\n= b \\] text", ["a\n= b"]],
    ["> $$\n> a\n> $$", ["a"]],
    ["- item\n  ```\n  $no$\n  ```\n  \\(yes\\)", ["yes"]],
    ["\\(a\n\nb\\)", []],
    ["\\begin{align}\na &= b \\\\\n&= c\n\\end{align}", ["\\begin{align}\na &= b \\\\\n&= c\n\\end{align}"]],
    ["\\begin{itemize} and \\begin{align}", []],
    ["`\\begin{align}x\\end{align}`", []],
  ])("in %j", (text, found) => {
    expect(formulasOf(text)).toEqual(found);
  });

  it("leave code, links and emphasis around them intact", () => {
    expect(render("[$a$](https://x.example/$b$) *$c$*")).toContain('href="https://x.example/$b$"');
    expect(render("`$a` $b$ `c$`")).toContain('<code dir="auto">c$</code>');
  });
});

describe("hostile formulas", () => {
  it.each([
    `\\def\\a{${"x".repeat(500)}}${"\\a".repeat(150)}`,
    `a\\\\\\gdef\\a{x}\\a`,
    "\\newcommand{\\a}{x}\\a",
    "\\global\\let\\a=x",
    `\\bra@ket{}{${"x".repeat(500)}}{}{}{${"|".repeat(150)}}`,
    "x".repeat(2_001),
    `${"\\frac{".repeat(25)}a${"}{b}".repeat(25)}`,
    `${"\\left(".repeat(25)}a${"\\right)".repeat(25)}`,
  ])("are not rendered (%#)", (tex) => {
    const box = { textContent: "" } as HTMLElement;
    renderTex.mockClear();
    createRenderFormula(() => 0)(tex, `$$${tex}$$`, box, true);
    expect(renderTex).not.toHaveBeenCalled();
    expect(box.textContent).toBe(`$$${tex}$$`);
  });

  it.each(["\\frac{a}{b}", "\\definecolor x", "a\\\\let", "\\left(x\\right)", "\\longrightarrow"])(
    "%s is rendered",
    (tex) => {
      renderTex.mockClear();
      createRenderFormula(() => 0)(tex, `$${tex}$`, {} as HTMLElement, false);
      expect(renderTex).toHaveBeenCalledOnce();
    },
  );

  it("are rendered until that has taken too long", () => {
    let now = 0;
    const renderFormula = createRenderFormula(() => {
      now += 100;
      return now;
    });
    renderTex.mockClear();
    for (let n = 0; n < 100; n++) renderFormula("x", "$x$", {} as HTMLElement, false);
    expect(renderTex.mock.calls.length).toBeLessThan(40);
  });

  it.each(["a&", "\\left(\\right)", "\\frac12"])("of %j are few in one text", (piece) => {
    const formula = `$$${piece.repeat(1_900 / piece.length)}$$\n\n`;
    const rendered = splitBlocks(formula.repeat(300)).filter((block) => block.kind === "markdown");
    expect(rendered.length).toBeLessThan(12);
    expect(splitBlocks(formula.trimEnd().repeat(8)).map((block) => block.kind)).toEqual(["plain"]);
  });

  it("do not take the place of many ordinary ones", () => {
    const blocks = splitBlocks("Let $x_1 = \\frac{a}{b}$ be a root of $$\\sum_{i=1}^n a_i x^i = 0.$$\n\n".repeat(150));
    expect(blocks.every((block) => block.kind === "markdown")).toBe(true);
  });
});

describe("diagrams", () => {
  const fence = "```mermaid\ngraph TD\nA-->B\n```\n\n";

  it("have no frame before they are near the viewport", () => {
    const html = render(["", "- item\n\n  "].map((prefix) => prefix + fence).join(""));
    expect(html.match(/Show diagram/g)?.length).toBeGreaterThan(0);
    expect(html).not.toContain("<iframe");
  });

  it("are few in one text", () => {
    expect(splitBlocks(fence.repeat(3_000)).length).toBeLessThan(110);
    expect(splitBlocks(fence.repeat(50)).every((block) => block.kind === "code")).toBe(true);
  });

  it("have a limited number of frames, of which the oldest makes room on request", () => {
    const slots = new FrameSlots(2);
    const removed: string[] = [];
    const [a, b, c] = ["a", "b", "c"].map((name) => () => void removed.push(name)) as [
      () => void,
      () => void,
      () => void,
    ];
    expect([a, b, c, a].map((frame) => slots.take(frame))).toEqual([true, true, false, true]);
    slots.replace(c);
    expect(removed).toEqual(["a"]);
    expect(slots.take(a)).toBe(false);
    slots.release(b);
    expect(slots.take(a)).toBe(true);
    slots.replace(a);
    expect(removed).toEqual(["a"]);
  });
});

describe("blocks", () => {
  it("give the same result when the text grows by any piece", () => {
    const text =
      "a[^1]\n```js\nx\n\ny\n```\n- b\n\n  ```\n  $\n  ```\n\n\\[\nc\n\nd\n\\]\n[^1]: n\n\n    m\n\n$$\n\nend";
    let grown = splitBlocks("");
    for (let end = 1; end <= text.length; end++) {
      grown = splitBlocks(text.slice(0, end), grown);
      expect(grown).toEqual(splitBlocks(text.slice(0, end)));
    }
    expect(grown.map((block) => block.text).join("")).toBe(text);
    expect(grown.map((block) => block.kind)).toEqual([
      "markdown",
      "code",
      "markdown",
      "markdown",
      "markdown",
      "markdown",
    ]);
  });

  it("of code have no fences", () => {
    expect(readFence("```ts x\na\n\nb\n```\n\n")).toEqual({ code: "a\n\nb", language: "ts" });
    expect(readFence("  ~~~\n  a\n   b\n")).toEqual({ code: "a\n b", language: "" });
  });

  it("refer to definitions in other blocks", () => {
    const text = "See [A  b] and [c][a B].[^n]\n\n[a b]: https://x.example/\n\n[^n]: Note.\n\n    More.";
    const html = render(text);
    expect(html.match(/href="https:\/\/x.example\/"/g)).toHaveLength(2);
    expect(html).toContain("Footnote 1");
    const { footnotes } = new Definitions(splitBlocks(text));
    expect(footnotes.map(({ number, text }) => [number, text])).toEqual([[1, "Note.\n\nMore."]]);
  });
});

/** Deterministic pseudo-random numbers (mulberry32). */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const PIECES = [
  ...["*a_ ", "**a ", "_.", "[", "]", "![", "[a](", "[a] ", "[^a]", "[^a]: x\n", "[a]: x\n", "> ", ">", "1. ", "- "],
  ...[
    "`",
    "`a``",
    "```",
    "```\n",
    "~~~\n",
    "~a~~ ",
    "|",
    "|a|b|\n|-|-|\n",
    "<",
    "<a ",
    "<!--",
    "<sub>",
    "</sub>",
    "<br>",
  ],
  ...["\\[", "\\]", "\\(", "\\)", "$", "$$", "$a$ ", "$$\n", "\\[\n", "&", "www.a ", "a@b.c ", "https://a ", "a\n=\n"],
  ...["# a\n", "---\n", "    a\n\n", "  ", "\t", "a\n\n", "- a\n\n", "\n", "\\", "!", "word "],
];

function hostileText(seed: number, size: number): string {
  const random = generator(seed);
  const alphabet =
    seed < PIECES.length ? [PIECES[seed]] : Array.from({ length: 1 + random(4) }, () => PIECES[random(PIECES.length)]);
  let text = "";
  while (text.length < size)
    text += (alphabet[random(alphabet.length)] ?? "").repeat(1 + random(seed < PIECES.length ? 1 : 200));
  return text;
}

function cpuMilliseconds(action: () => void): number {
  const before = process.cpuUsage().user;
  action();
  return (process.cpuUsage().user - before) / 1000;
}

describe("hostile text", () => {
  const size = process.env.HOLDFAST_LONG_TESTS ? 20_000 : 5_000;
  const ordinary = "A paragraph with **bold** text, `code` and [a link](https://x.example/).\n\n".repeat(size / 75);
  render(ordinary.slice(0, 10_000)); // warm-up
  // Other programs on the machine slow both texts down, but not evenly: the best of several attempts counts.
  const isQuick = (text: string): boolean => {
    const took = cpuMilliseconds(() => render(text));
    return took < 500 || took < 500 + 10 * cpuMilliseconds(() => render(ordinary));
  };

  it.each(Array.from({ length: PIECES.length + 8 }, (_, seed) => seed))(
    "takes a small multiple of the time of ordinary text (%i)",
    (seed) => {
      const text = hostileText(seed, size);
      expect(
        splitBlocks(text)
          .map((block) => block.text)
          .join(""),
      ).toBe(text);
      expect(isQuick(text) || isQuick(text) || isQuick(text)).toBe(true);
    },
  );

  it.each(Array.from({ length: PIECES.length + 8 }, (_, seed) => seed))(
    "is counted as work in proportion to its elements (%i)",
    (seed) => {
      for (const text of [hostileText(seed, 2_000), `${hostileText(seed, 40)}\n\n`.repeat(30)]) {
        const elements = render(text).match(/<[a-z]/g)?.length ?? 0;
        expect(elements * 8).toBeLessThan(100 + (splitBlocks(text).at(-1)?.work ?? 0));
      }
    },
  );

  it.each(["*a_ ", "\\[", ...PIECES])("of any length is limited work (%j)", (piece) => {
    for (const size of [1, 3_000]) {
      const block = `${piece.repeat(Math.ceil(size / piece.length))}\n\n`;
      const blocks = splitBlocks(block.repeat(Math.ceil(500_000 / block.length)));
      const rendered = blocks.filter(({ kind }) => kind !== "plain");
      expect(rendered.at(-1)?.work ?? 0).toBeLessThan(1_000_000);
      expect(rendered.length).toBeLessThan(5_000);
    }
  });

  it("is shown as it is written if it is one of the two that froze the page", () => {
    for (const text of ["*a_ ".repeat(20_000), "\\[".repeat(60_000)]) {
      expect(splitBlocks(text).map(({ kind }) => kind)).toEqual(["plain"]);
    }
  });
});

describe("a growing text", () => {
  it.each(["*a_ ", "- item with **bold** text\n", "x = 1\n"])(
    "of %j renders its last block for a quarter of the time",
    (piece) => {
      let now = 0;
      let worked = 0;
      let next = 0;
      let text = piece === "x = 1\n" ? "```py\n" : "";
      let blocks = splitBlocks(text);
      while (text.length < 15_000) {
        now += 16;
        text += piece.repeat(4);
        if (now < next) continue;
        blocks = splitBlocks(text, blocks);
        const own = (blocks.at(-1)?.work ?? 0) - (blocks.at(-2)?.work ?? 0);
        worked += own > 4_000 ? own / 200 : 0;
        next = now + pauseBetweenRenders(blocks);
      }
      expect(worked).toBeLessThan(now / 2);
    },
  );

  it.each(["markdown", "md", "mkd", "mkdown"])("of %s is not highlighted", (language) => {
    expect(createHighlight(() => 0)("[a](\n".repeat(10), language)).toBeNull();
  });

  it("is not highlighted if its lines are very long", () => {
    const highlight = createHighlight(() => 0);
    expect(highlight("class A".repeat(2_000), "cpp")).toBeNull();
    expect(highlight("class A\n".repeat(10), "cpp")).not.toBeNull();
  });

  it("is highlighted until that has taken too long", () => {
    let now = 0;
    const highlight = createHighlight(() => {
      now += 100;
      return now;
    });
    const results = Array.from({ length: 100 }, () => highlight("x = 1", "python"));
    expect(results[0]).not.toBeNull();
    expect(results.filter(Boolean).length).toBeLessThan(40);
    expect(results.at(-1)).toBeNull();
  });
});

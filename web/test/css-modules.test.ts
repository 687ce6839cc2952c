import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const UI = join(import.meta.dirname, "../src/ui");
const files = readdirSync(UI, { recursive: true, encoding: "utf8" });
const read = (name: string) => readFileSync(join(UI, name), "utf8");
const sources = files.filter((name) => name.endsWith(".tsx")).map((name) => ({ name, code: read(name) }));
const modules = files.filter((name) => name.endsWith(".module.css"));

/** Returns the classes that the sources use of a module; null if some are looked up dynamically. */
function usedClasses(module: string): Set<string> | null {
  const used = new Set<string>();
  for (const { name, code } of sources) {
    for (const [, variable, path] of code.matchAll(/import (\w+) from "(\.[^"]+\.module\.css)"/g)) {
      if (join(dirname(name), path as string) !== module) continue;
      if (code.includes(`${variable}[`)) return null;
      for (const [, found] of code.matchAll(new RegExp(`(?<![\\w/])${variable}\\.(\\w+)`, "g")))
        used.add(found as string);
    }
  }
  return used;
}

describe("CSS modules", () => {
  it.each(modules)("%s defines exactly the classes that are used", (module) => {
    const css = read(module).replace(/:global\([^{]*\)|\/\*.*?\*\//gs, "");
    const defined = new Set([...css.matchAll(/\.([a-z]\w*)/gi)].map(([, name]) => name));
    const used = usedClasses(module);
    if (used) expect([...used].sort()).toEqual([...defined].sort());
  });
});

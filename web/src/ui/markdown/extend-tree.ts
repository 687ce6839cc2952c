// A remark plugin that adds what the parser leaves out: formulas, numbered footnotes, simple HTML tags and the direction
// of each block.

import type { Html, Nodes, Parents, PhrasingContent, Root, RootContent } from "mdast";
import { type Formula, restoreFormulas, splitFormulas } from "../../core/formulas.ts";

/** Tags that format text. With attributes they are shown as they are written, like all other HTML. */
const TAG = /^<(\/?)(b|br|del|em|i|ins|kbd|mark|s|small|strong|sub|sup|u)\s*\/?>$/i;

export function extendTree({ formulas }: { formulas: readonly Formula[] }) {
  return (tree: Root): void => {
    const numbers = new Map<string, string>();
    for (const node of tree.children) {
      // The last definition of a label is the one that was appended to the block; its content is its number.
      if (node.type === "footnoteDefinition") numbers.set(node.identifier, textOf(node));
    }
    extendChildren(tree, formulas, numbers);
    for (const node of tree.children) node.data = { ...node.data, hProperties: { dir: "auto" } };
  };
}

function textOf(node: Nodes): string {
  return "value" in node ? node.value : "children" in node ? node.children.map(textOf).join("") : "";
}

function extendChildren(parent: Parents, formulas: readonly Formula[], numbers: ReadonlyMap<string, string>): void {
  const children: RootContent[] = [];
  for (const child of parent.children) {
    if ("children" in child) extendChildren(child, formulas, numbers);
    if (child.type === "footnoteDefinition") continue;
    if (child.type === "footnoteReference") children.push(footnoteLink(numbers.get(child.identifier) ?? "0"));
    else if (child.type === "text") children.push(...withFormulas(child.value, formulas));
    else children.push(restored(child, formulas));
  }
  parent.children = applyTags(children) as typeof parent.children;
}

function footnoteLink(number: string): RootContent {
  return { type: "link", url: `#footnote-${number}`, children: [{ type: "text", value: number }] };
}

function withFormulas(text: string, formulas: readonly Formula[]): PhrasingContent[] {
  if (formulas.length === 0) return [{ type: "text", value: text }];
  return splitFormulas(text, formulas).map((piece) => {
    if (typeof piece === "string") return { type: "text", value: piece };
    const { tex, source, display } = piece;
    const delimiter = source.startsWith("$") ? (display ? "$$" : undefined) : source.slice(0, 2);
    const hProperties = { dataTex: tex, dataDelimiter: delimiter };
    return { type: "emphasis", children: [], data: { hName: "span", hProperties } };
  });
}

function restored(node: RootContent, formulas: readonly Formula[]): RootContent {
  if (formulas.length === 0) return node;
  for (const field of ["value", "url", "title", "alt", "lang", "meta"]) {
    const value: unknown = Reflect.get(node, field);
    if (typeof value === "string") Reflect.set(node, field, restoreFormulas(value, formulas));
  }
  return node;
}

/** Wraps the nodes between an opening tag and its closing tag. A tag without a counterpart remains text. */
function applyTags(nodes: RootContent[]): RootContent[] {
  const done: RootContent[] = [];
  const open: { name: string; at: number }[] = [];
  for (const node of nodes) {
    const [, slash, tag = ""] = (node.type === "html" && TAG.exec(node.value.trim())) || [];
    const name = tag.toLowerCase();
    if (name === "br") done.push({ type: "break" });
    else if (slash === "/" && open.at(-1)?.name === name) {
      const at = open.pop()?.at ?? 0;
      const children = done.splice(at).slice(1) as PhrasingContent[];
      done.push({ type: "emphasis", children, data: { hName: name } });
    } else {
      if (slash === "" && name !== "") open.push({ name, at: done.length });
      done.push(node satisfies RootContent | Html);
    }
  }
  return done;
}

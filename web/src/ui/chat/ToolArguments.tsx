import { escapeInvisible } from "../../core/invisible-characters.ts";
import { listArguments } from "../../core/tool-arguments.ts";
import type { Json } from "../../core/types.ts";
import text from "../widgets/text.module.css";

/** The arguments of a tool call, each as a block; a single one needs no name. */
export function ToolArguments({ args }: { args: Json }) {
  const list = listArguments(args);
  return list.map(({ name, text: content }) => (
    <div key={name} className={text.block}>
      {name !== null && list.length > 1 && <p className={text.blockTitle}>{escapeInvisible(name)}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre tabIndex={0}>{escapeInvisible(content)}</pre>
    </div>
  ));
}

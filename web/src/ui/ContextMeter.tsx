// How full the model's window was at the last answer.

import type { Shown } from "../core/thread.ts";
import { useApp, useStore } from "./context.ts";
import { count } from "./format.ts";

export function ContextMeter({ messages, model }: { messages: readonly Shown[]; model: string | null }) {
  const { models, defaultModel } = useStore(useApp().catalogue);
  const usage = messages.findLast((message) => message.usage)?.usage;
  const size = models.find((item) => item.id === (model ?? defaultModel))?.context;
  if (!usage || !size) return null;
  const used = usage.input_tokens + usage.output_tokens;
  const text = `Context: ${count(used)} of ${count(size)} tokens`;
  return (
    <span className="context-meter" title={text}>
      <meter min={0} max={size} high={size * 0.85} value={Math.min(used, size)} aria-label={text} />
      <span aria-hidden="true">{Math.round((100 * used) / size)}%</span>
    </span>
  );
}

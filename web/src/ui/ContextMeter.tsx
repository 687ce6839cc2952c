// How full the model's window is, by the server's estimate. Asked for when an answer has ended.

import { useEffect, useState } from "react";
import type { Shown } from "../core/thread.ts";
import { useApp, useStore } from "./context.ts";
import { count } from "./format.ts";

interface Filling {
  readonly used: number;
  readonly limit: number | null;
}

export function ContextMeter({ sid, messages }: { sid: string; messages: readonly Shown[] }) {
  const { api, catalogue } = useApp();
  const { models } = useStore(catalogue);
  const [filling, setFilling] = useState<Filling | null>(null);
  const last = messages.at(-1);
  const settled = last && last.status !== "streaming" ? last.id : null;
  const measurable = models.length > 0 && settled !== null;
  useEffect(() => {
    if (!measurable || !settled) return;
    api.get<Filling>(`/api/sessions/${sid}/context`).then(setFilling, () => setFilling(null));
  }, [api, sid, settled, measurable]);
  if (!filling?.limit) return null;
  const { used, limit } = filling;
  const text = `Context: about ${count(used)} of ${count(limit)} tokens`;
  return (
    <span className="context-meter" title={text}>
      <meter min={0} max={limit} high={limit * 0.85} value={Math.min(used, limit)} aria-label={text} />
      <span aria-hidden="true">{Math.round((100 * used) / limit)}%</span>
    </span>
  );
}

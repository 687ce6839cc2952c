import { useEffect, useState } from "react";
import type { SessionContextResponse } from "../../core/api-types.ts";
import type { ThreadMessage } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount } from "../format.ts";
import styles from "./ContextMeter.module.css";

/** How much of the model's context window is used, as estimated by the server after each answer. */
export function ContextMeter({ sid, messages }: { sid: string; messages: readonly ThreadMessage[] }) {
  const { api, catalog } = useApp();
  const { models } = useStore(catalog);
  const [usage, setUsage] = useState<SessionContextResponse | null>(null);
  const last = messages.at(-1);
  const settled = models.length > 0 && last && last.status !== "streaming" ? last.id : null;
  useEffect(() => {
    if (!settled) return;
    api.get<SessionContextResponse>(`/api/sessions/${sid}/context`).then(setUsage, () => setUsage(null));
  }, [api, sid, settled]);
  if (!usage?.limit) return null;
  const { used, limit } = usage;
  const label = `Context used: about ${formatCount(used)} of ${formatCount(limit)} tokens`;
  return (
    <span className={styles.contextMeter} title={label}>
      <meter min={0} max={limit} high={limit * 0.85} value={Math.min(used, limit)} aria-label={label} />
      <span aria-hidden="true">{Math.round((100 * used) / limit)}%</span>
    </span>
  );
}

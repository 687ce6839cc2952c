import { useEffect, useState } from "react";
import type { SessionContextResponse } from "../../core/api-types.ts";
import { isConnected } from "../../core/models.ts";
import type { ThreadMessage } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount } from "../format.ts";
import styles from "./ContextMeter.module.css";

interface Props {
  sid: string;
  agent: string | undefined;
  /** The id of the model; none for an agent that runs as a program. */
  model: string | undefined;
  messages: readonly ThreadMessage[];
}

/** How much of the context window is used: an estimate of the server after each answer, or what the agent reported. */
export function ContextMeter({ sid, agent, model, messages }: Props) {
  const { api, catalog } = useApp();
  const { models, agents } = useStore(catalog);
  const [usage, setUsage] = useState<SessionContextResponse | null>(null);
  const last = messages.at(-1);
  const measured = isConnected(models, model) || agents.some(({ name, is_program }) => is_program && name === agent);
  const settled = measured && last && last.status !== "streaming" ? last.id : null;
  useEffect(() => {
    if (!settled || !agent) return;
    api.get<SessionContextResponse>(`/api/sessions/${sid}/context`).then(setUsage, () => setUsage(null));
  }, [api, sid, settled, agent]);
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

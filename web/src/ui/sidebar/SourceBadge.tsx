import type { Session } from "../../core/types.ts";
import styles from "./SourceBadge.module.css";

/** Marks sessions that were created through the OpenAI-compatible API. */
export function SourceBadge({ session }: { session: Session }) {
  if (session.settings?.source !== "openai") return null;
  return (
    <span className={styles.badge} title="Created through the OpenAI-compatible API">
      API
    </span>
  );
}

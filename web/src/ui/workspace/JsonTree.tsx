// JSON as a tree, of which only what is open is rendered.

import { useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import type { Json } from "../../core/types.ts";
import { formatCount } from "../format.ts";
import styles from "./Workspace.module.css";

const MAX_CHILDREN = 500;
const MAX_TEXT = 2000;

export function JsonTree({ value }: { value: Json }) {
  return (
    <div className={styles.json}>
      <JsonNode name={null} value={value} initiallyOpen />
    </div>
  );
}

function JsonNode({
  name,
  value,
  initiallyOpen = false,
}: {
  name: string | null;
  value: Json;
  initiallyOpen?: boolean;
}) {
  const [open, setOpen] = useState(initiallyOpen);
  const label = name !== null && <span className={styles.jsonKey}>{escapeInvisible(name)}: </span>;
  if (value === null || typeof value !== "object") {
    const shown = JSON.stringify(value);
    return (
      <div>
        {label}
        <span className={styles.jsonValue}>{escapeInvisible(shown.slice(0, MAX_TEXT))}</span>
        {shown.length > MAX_TEXT && "…"}
      </div>
    );
  }
  const isList = Array.isArray(value);
  const count = isList ? value.length : Object.keys(value).length;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span className={styles.jsonCount}>
          {isList ? "[" : "{"}
          {formatCount(count)}
          {isList ? "]" : "}"}
        </span>
      </summary>
      {open && (
        <div className={styles.jsonChildren}>
          {Object.entries(value)
            .slice(0, MAX_CHILDREN)
            .map(([key, child]) => (
              <JsonNode key={key} name={key} value={child as Json} />
            ))}
          {count > MAX_CHILDREN && <p>… and {formatCount(count - MAX_CHILDREN)} more</p>}
        </div>
      )}
    </details>
  );
}

// A list of items with a status, facts and actions: runs, models, tools, servers, tokens, memories.

import type { ReactNode } from "react";
import { Button } from "./buttons.tsx";
import { classNames } from "./class-names.ts";
import { InlineCode } from "./InlineCode.tsx";
import styles from "./ItemList.module.css";

export function ItemList({ children, label }: { children: ReactNode; label?: string }) {
  return (
    <ul className={styles.list} aria-label={label}>
      {children}
    </ul>
  );
}

export type StatusKind = "good" | "bad" | "warning" | "neutral";

export type ItemStatus = { text: string; kind: StatusKind };

interface ItemProps {
  status?: ItemStatus | undefined;
  title: ReactNode;
  facts?: readonly (string | false | null | undefined)[];
  /** Shown below the facts. */
  details?: ReactNode;
  /** The actions. */
  children?: ReactNode;
}

export function Item({ status, title, facts = [], details, children }: ItemProps) {
  const summary = facts.filter(Boolean).join(" · ");
  return (
    <li className={classNames(styles.item, status && styles.withStatus)}>
      {status && <span className={classNames(styles.status, styles[status.kind])}>{status.text}</span>}
      <div className={styles.main}>
        <div className={styles.title}>{title}</div>
        {summary && (
          <div className={styles.facts}>
            <InlineCode text={summary} />
          </div>
        )}
        {details}
      </div>
      {children && <div className={styles.actions}>{children}</div>}
    </li>
  );
}

interface ItemActionProps {
  name: string;
  /** The item's name, for assistive technology. */
  of?: string;
  onClick: () => void;
  disabled?: boolean;
}

export function ItemAction({ name, of, onClick, disabled = false }: ItemActionProps) {
  return (
    <Button small aria-label={of && `${name}: ${of}`} disabled={disabled} onClick={onClick}>
      {name}
    </Button>
  );
}

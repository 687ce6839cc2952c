// Lists of things with a state, facts and what can be done with them: runs, models, tools, servers, tokens, facts.

import type { ReactNode } from "react";

export function Rows({ children, label }: { children: ReactNode; label?: string }) {
  return (
    <ul className="rows" aria-label={label}>
      {children}
    </ul>
  );
}

interface RowProps {
  /** Said in a word, with the name of its colour. */
  status?: { text: string; kind: "good" | "bad" | "warn" | "calm" } | undefined;
  title: ReactNode;
  facts?: readonly (string | false | null | undefined)[];
  /** Below the facts, over the whole width. */
  more?: ReactNode;
  children?: ReactNode;
}

export function Row({ status, title, facts = [], more, children }: RowProps) {
  const said = facts.filter(Boolean).join(" · ");
  return (
    <li className={status ? "item with-status" : "item"}>
      {status && <span className={`status ${status.kind}`}>{status.text}</span>}
      <div className="item-main">
        <div className="item-title">{title}</div>
        {said && <div className="item-facts">{said}</div>}
        {more}
      </div>
      {children && <div className="item-actions">{children}</div>}
    </li>
  );
}

interface ActionProps {
  name: string;
  /** What it is done with, for those who do not see where the button stands. */
  of?: string;
  onClick: () => void;
  disabled?: boolean;
}

export function Action({ name, of, onClick, disabled = false }: ActionProps) {
  return (
    <button
      type="button"
      className="button small"
      aria-label={of && `${name}: ${of}`}
      disabled={disabled}
      onClick={onClick}
    >
      {name}
    </button>
  );
}

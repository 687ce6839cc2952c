// The parts of a message: reasoning, tools, files, what was remembered.

import { memo, useEffect, useRef, useState } from "react";
import type { FilePart, Json, JsonObject, ReasoningPart, RememberedPart, ToolPart, ToolState } from "../core/wire.ts";
import { Diff, editOf } from "./Diff.tsx";
import { duration, pretty, size } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Prose } from "./Prose.tsx";
import { Link } from "./router.tsx";
import { useOpen } from "./windowing.tsx";

export const ReasoningCard = memo(function ReasoningCard({ part, growing }: { part: ReasoningPart; growing: boolean }) {
  const began = useRef<number | null>(null);
  const [took, setTook] = useState<number | null>(null);
  const [open, setOpen] = useOpen(part); // null: as it comes, open while it grows
  useEffect(() => {
    if (growing) began.current ??= performance.now();
    else if (began.current !== null) setTook(performance.now() - began.current);
  }, [growing]);
  const ms = part.duration_ms ?? took;
  const done = ms === null ? "Thought" : `Thought for ${duration(ms)}`;
  const shown = open ?? growing;
  return (
    <section className="card reasoning" aria-label="Reasoning">
      <button type="button" className="card-head" aria-expanded={shown} onClick={() => setOpen(!shown)}>
        <Icon name="brain" />
        <span>{growing ? "Thinking…" : done}</span>
        <Icon name={shown ? "down" : "right"} />
      </button>
      {shown && (
        <div className="card-body">
          <Prose text={part.text} growing={growing} />
        </div>
      )}
    </section>
  );
});

const STATES: Readonly<Record<ToolState, string>> = {
  pending: "preparing",
  waiting: "waits for you",
  running: "running",
  done: "done",
  denied: "denied",
  unknown: "outcome unknown",
  not_run: "not run",
};

export const ToolCard = memo(function ToolCard({ part }: { part: ToolPart }) {
  const live = part.state === "running";
  const [open, setOpen] = useOpen(part);
  const shown = open ?? (live || part.is_error);
  const state = part.state === "done" && part.is_error ? "failed" : STATES[part.state];
  const edit = editOf(part.args);
  return (
    <section className={`card tool ${part.is_error ? "failed" : part.state}`} aria-label={`Tool ${part.name}`}>
      <button type="button" className="card-head" aria-expanded={shown} onClick={() => setOpen(!shown)}>
        <Icon name="tool" />
        <span className="tool-name">{part.name || "tool"}</span>
        <span className="tool-brief">{brief(part.args)}</span>
        <span className="tool-state">
          {state}
          {part.duration_ms !== undefined && part.state === "done" ? ` · ${duration(part.duration_ms)}` : ""}
        </span>
        <Icon name={shown ? "down" : "right"} />
      </button>
      {shown && (
        <div className="card-body">
          {edit ? (
            <Diff before={edit.before} after={edit.after} name={edit.path} />
          ) : (
            <Block name="Arguments" value={part.args} />
          )}
          {part.output && <Block name="Output" value={part.output} />}
          {part.state === "denied" && <Block name="Why" value={part.result} />}
          {part.state === "done" && <Block name={part.is_error ? "Error" : "Result"} value={part.result} />}
        </div>
      )}
    </section>
  );
});

function Block({ name, value }: { name: string; value: Json }) {
  if (value === null || value === "") return null;
  return (
    <div className="block">
      <h4>{name}</h4>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable */}
      <pre tabIndex={0}>{pretty(value)}</pre>
    </div>
  );
}

/** The first thing in the arguments that a person would call the tool by. */
function brief(args: Json): string {
  if (typeof args === "string") return args.slice(0, 80);
  if (args === null || typeof args !== "object" || Array.isArray(args)) return "";
  const value = Object.values(args as JsonObject).find((item) => typeof item === "string" || typeof item === "number");
  return value === undefined ? "" : (String(value).split("\n", 1)[0]?.slice(0, 80) ?? "");
}

export function FileCard({ part }: { part: FilePart }) {
  const href = `/api/files/${part.file_id}/content`;
  if (part.media_type.startsWith("image/")) {
    return (
      <a className="picture" href={href} download={part.name}>
        <img src={href} alt={part.name} loading="lazy" />
      </a>
    );
  }
  return (
    <a className="chip" href={href} download={part.name}>
      <Icon name="file" />
      <span>{part.name}</span>
      <span className="quiet">{size(part.size)}</span>
    </a>
  );
}

/** What the model was reminded of, and where that came from. */
export function RememberedCard({ part }: { part: RememberedPart }) {
  const { items, note } = part;
  const things = `Remembered ${items.length} ${items.length === 1 ? "thing" : "things"}`;
  return (
    <details className="card remembered">
      <summary className="card-head">
        <Icon name="spark" />
        <span>{items.length ? things : "Memory"}</span>
        {note && <span className="tool-brief">{note}</span>}
      </summary>
      <ul className="card-body">
        {items.map((item) => (
          <li key={pretty(item)}>
            {typeof item.text === "string" ? item.text : pretty(item)} <Source of={item.source ?? null} />
          </li>
        ))}
        {note && <li className="quiet">{note}</li>}
      </ul>
    </details>
  );
}

function Source({ of }: { of: Json }) {
  if (typeof of !== "string") return null;
  return of.startsWith("ses_") ? <Link href={`/c/${of}`}>its chat</Link> : <span className="quiet">({of})</span>;
}

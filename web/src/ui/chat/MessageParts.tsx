// The parts of a message: text, reasoning, tools, files, memories and plans.

import { memo, type ReactNode, useEffect, useRef, useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { summarizeArguments } from "../../core/tool-arguments.ts";
import type {
  FilePart,
  Json,
  Part,
  PlanPart,
  ReasoningPart,
  RememberedPart,
  ToolPart,
  ToolState,
} from "../../core/types.ts";
import { formatCount, formatDuration, formatJson, formatSize } from "../format.ts";
import { MarkdownText } from "../markdown/MarkdownText.tsx";
import { withRoot } from "../root-path.ts";
import { Link } from "../router.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon, type IconName } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import { useExpanded } from "../widgets/VirtualList.tsx";
import { CallDetails } from "./CallDetails.tsx";
import styles from "./MessageParts.module.css";

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

/** `growing`: the last part still streams in. `plain`: text is shown without Markdown. */
export function MessageParts({ parts, growing, plain }: { parts: readonly Part[]; growing: boolean; plain: boolean }) {
  const last = parts.length - 1;
  return parts.map((part, n) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are only appended
    <PartView key={n} part={part} growing={growing && n === last} plain={plain} />
  ));
}

function PartView({ part, growing, plain }: { part: Part; growing: boolean; plain: boolean }) {
  switch (part.type) {
    case "text":
      return plain ? <PlainText text={part.text} /> : <MarkdownText text={part.text} growing={growing} />;
    case "reasoning":
      return <ReasoningCard part={part} growing={growing} />;
    case "tool":
      return <ToolCard part={part} />;
    case "file":
      return <FileCard part={part} />;
    case "remembered":
      return <MemoryCard part={part} />;
    case "plan":
      return <PlanCard part={part} />;
  }
}

const LONG_TEXT = 3000;
const LONG_TEXT_LINES = 30;

/** Long text is collapsed by its height, so that the browser can still find words in it. */
export function PlainText({ text: content }: { text: string }) {
  const long = content.length > LONG_TEXT || content.split("\n", LONG_TEXT_LINES + 1).length > LONG_TEXT_LINES;
  const [expanded, setExpanded] = useState(false);
  return (
    <>
      <p className={classNames(text.plain, long && !expanded && styles.collapsed)} dir="auto" data-part="text">
        {content}
      </p>
      {long && (
        <Button small aria-expanded={expanded} onClick={() => setExpanded(!expanded)}>
          {expanded ? "Show less" : `Show all ${formatCount(content.length)} characters`}
        </Button>
      )}
    </>
  );
}

interface CardProps {
  label: string;
  icon: IconName;
  className?: string | undefined;
  header: ReactNode;
  expanded: boolean;
  onToggle: (expanded: boolean) => void;
  children: ReactNode;
}

function Card({ label, icon, className, header, expanded, onToggle, children }: CardProps) {
  return (
    <section className={classNames(styles.card, className)} aria-label={label}>
      <button type="button" className={styles.cardHeader} aria-expanded={expanded} onClick={() => onToggle(!expanded)}>
        <Icon name={icon} />
        {header}
        <Icon name={expanded ? "down" : "right"} />
      </button>
      {expanded && <div className={styles.cardBody}>{children}</div>}
    </section>
  );
}

const ReasoningCard = memo(function ReasoningCard({ part, growing }: { part: ReasoningPart; growing: boolean }) {
  const startedAt = useRef<number | null>(null);
  const [measured, setMeasured] = useState<number | null>(null);
  const [choice, setChoice] = useExpanded(part);
  useEffect(() => {
    if (growing) startedAt.current ??= performance.now();
    else if (startedAt.current !== null) setMeasured(performance.now() - startedAt.current);
  }, [growing]);
  const ms = part.duration_ms ?? measured;
  const thought = ms === null ? "Thought" : `Thought for ${formatDuration(ms)}`;
  return (
    <Card
      label="Reasoning"
      icon="brain"
      className={styles.reasoning}
      header={<span>{growing ? "Thinking…" : thought}</span>}
      expanded={choice ?? growing}
      onToggle={setChoice}
    >
      <MarkdownText text={part.text} growing={growing} />
    </Card>
  );
});

const TOOL_STATES: Readonly<Record<ToolState, string>> = {
  pending: "Preparing",
  waiting: "Needs approval",
  running: "Running",
  done: "Done",
  denied: "Denied",
  unknown: "Outcome unknown",
  not_run: "Not run",
};

const ToolCard = memo(function ToolCard({ part }: { part: ToolPart }) {
  const [choice, setChoice] = useExpanded(part);
  const state = part.state === "done" && part.is_error ? "Failed" : TOOL_STATES[part.state];
  const took = part.duration_ms !== undefined && part.state === "done" ? ` · ${formatDuration(part.duration_ms)}` : "";
  return (
    <Card
      label={`Tool ${part.name}`}
      icon="tool"
      className={part.is_error ? styles.failed : styles[part.state]}
      header={
        <>
          <span className={styles.toolName}>{escapeInvisible(part.name) || "Tool"}</span>
          <span className={classNames(text.ellipsis, styles.summary)}>
            {escapeInvisible(summarizeArguments(part.args))}
          </span>
          <span className={styles.toolState}>
            {state}
            {took}
          </span>
        </>
      }
      expanded={choice ?? (part.state === "running" || part.state === "unknown" || part.is_error)}
      onToggle={setChoice}
    >
      <CallDetails args={part.args} />
      {part.state === "unknown" && (
        <p className={text.quiet}>
          Its end was not reported. It may or may not have finished: check before running it again.
        </p>
      )}
      {part.output && part.output !== part.result && <ValueBlock name="Output" value={part.output} />}
      {part.state === "denied" && <ValueBlock name="Reason" value={part.result} />}
      {part.state === "done" && <ValueBlock name={part.is_error ? "Error" : "Result"} value={part.result} />}
    </Card>
  );
});

function ValueBlock({ name, value }: { name: string; value: Json }) {
  if (value === null || value === "") return null;
  return (
    <div className={text.block}>
      <p className={text.blockTitle}>{name}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre tabIndex={0}>{formatJson(value)}</pre>
    </div>
  );
}

export function FileCard({ part }: { part: FilePart }) {
  const href = withRoot(`/api/files/${part.file_id}/content`);
  if (part.media_type.startsWith("image/")) {
    return (
      <a className={styles.image} href={href} download={part.name}>
        <img src={href} alt={part.name} loading="lazy" />
      </a>
    );
  }
  return (
    <a className={text.chip} href={href} download={part.name}>
      <Icon name="file" />
      <span>{part.name}</span>
      <span className={text.quiet}>{formatSize(part.size)}</span>
    </a>
  );
}

const PLAN_MARKS = { pending: "○", in_progress: "◐", completed: "✓" } as const;
const PLAN_STATES = { pending: "To do", in_progress: "In progress", completed: "Done" } as const;

const PlanCard = memo(function PlanCard({ part: { entries } }: { part: PlanPart }) {
  const done = entries.filter((entry) => entry.status === "completed").length;
  return (
    <section className={classNames(styles.card, styles.plan)} aria-label="Plan">
      <p className={styles.cardHeader}>
        <Icon name="check" />
        <span>Plan</span>
        <span className={styles.toolState}>
          {done} of {entries.length} done
        </span>
      </p>
      <ul className={styles.cardBody}>
        {entries.map(({ content, status }, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: entries have no ids, and texts may repeat
          <li key={n} className={styles[status]}>
            <span role="img" aria-label={PLAN_STATES[status]}>
              {PLAN_MARKS[status]}
            </span>{" "}
            {content}
          </li>
        ))}
      </ul>
    </section>
  );
});

function MemoryCard({ part }: { part: RememberedPart }) {
  const { items, note } = part;
  return (
    <details className={classNames(styles.card, styles.memory)}>
      <summary className={styles.cardHeader}>
        <Icon name="spark" />
        <span>{items.length ? `Used ${items.length} ${items.length === 1 ? "memory" : "memories"}` : "Memory"}</span>
        {note && <span className={classNames(text.ellipsis, styles.summary)}>{note}</span>}
      </summary>
      <ul className={styles.cardBody}>
        {items.map((item) => (
          <li key={formatJson(item)}>
            {typeof item.text === "string" ? item.text : formatJson(item)} <MemorySource source={item.source ?? null} />
          </li>
        ))}
        {note && <li className={text.quiet}>{note}</li>}
      </ul>
    </details>
  );
}

function MemorySource({ source }: { source: Json }) {
  if (typeof source !== "string") return null;
  if (source.startsWith("ses_")) return <Link href={`/c/${source}`}>Source chat</Link>;
  return <span className={text.quiet}>({source})</span>;
}

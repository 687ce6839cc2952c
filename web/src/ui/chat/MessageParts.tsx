// The parts of a message: text, reasoning, tools, files, memories and plans.

import { memo, type ReactNode, useEffect, useRef, useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { summarizeArguments } from "../../core/tool-arguments.ts";
import { failedExitCode, isQueued, repeatsOutput, toolLabel } from "../../core/tool-results.ts";
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
import { ASK_USER, isSkipped } from "../../core/user-questions.ts";
import { formatCount, formatDuration, formatJson, formatSize } from "../format.ts";
import { MarkdownText } from "../markdown/MarkdownText.tsx";
import { withRoot } from "../root-path.ts";
import { Link } from "../router.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon, type IconName } from "../widgets/icons.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import text from "../widgets/text.module.css";
import { useExpanded } from "../widgets/VirtualList.tsx";
import { openLightbox } from "./lightbox-state.ts";
import styles from "./MessageParts.module.css";

const CallDetails = lazyOverlay(() => import("./CallDetails.tsx"));

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

/** `growing`: the last part still streams in. `plain`: text is shown without Markdown. */
export function MessageParts({ parts, growing, plain }: { parts: readonly Part[]; growing: boolean; plain: boolean }) {
  const last = parts.length - 1;
  return parts.map((part, n) => (
    <PartView
      // biome-ignore lint/suspicious/noArrayIndexKey: parts are only appended
      key={n}
      part={part}
      growing={growing && n === last}
      plain={plain}
      queued={growing && isQueued(parts, n)}
    />
  ));
}

interface PartProps {
  part: Part;
  growing: boolean;
  plain: boolean;
  /** Whether it is a call that waits for others. */
  queued: boolean;
}

function PartView({ part, growing, plain, queued }: PartProps) {
  switch (part.type) {
    case "text":
      return plain ? <PlainText text={part.text} /> : <MarkdownText text={part.text} growing={growing} />;
    case "reasoning":
      return <ReasoningCard part={part} growing={growing} />;
    case "tool":
      return <ToolCard part={part} queued={queued} />;
    case "file":
      return <FileCard part={part} />;
    case "remembered":
      return <MemoryCard part={part} />;
    case "plan":
      return <PlanCard part={part} />;
    case "steered":
      return <AddedText text={part.text} />;
  }
}

const LONG_TEXT = 3000;
const LONG_TEXT_LINES = 30;

/** Long text is collapsed by its height, so that the browser can still find words in it. */
export function PlainText({ text: content, part = "text" }: { text: string; part?: string }) {
  const long = content.length > LONG_TEXT || content.split("\n", LONG_TEXT_LINES + 1).length > LONG_TEXT_LINES;
  const [expanded, setExpanded] = useState(false);
  return (
    <>
      <p className={classNames(text.plain, long && !expanded && styles.collapsed)} dir="auto" data-part={part}>
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

/** What the user added while the answer was active, where the model read it. */
function AddedText({ text: content }: { text: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div className={styles.added} role="group" aria-label="You added">
      <PlainText text={content} part="steered" />
    </div>
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

const QUESTION_STATES: Partial<Record<ToolState, string>> = {
  waiting: "Waiting for your answer",
  done: "Answered",
  not_run: "Not answered",
};

function stateOf(part: ToolPart): string {
  if (isSkipped(part)) return "Skipped";
  return (part.name === ASK_USER && QUESTION_STATES[part.state]) || TOOL_STATES[part.state];
}

const isAnswered = (part: ToolPart) =>
  part.name === ASK_USER && part.state === "done" && !part.is_error && !isSkipped(part);
const resultName = (part: ToolPart) => (part.is_error ? "Error" : isAnswered(part) ? "Answer" : "Result");

const ToolCard = memo(function ToolCard({ part, queued }: { part: ToolPart; queued: boolean }) {
  const [choice, setChoice] = useExpanded(part);
  const exitCode = failedExitCode(part);
  const failed = part.state === "done" && (part.is_error || exitCode !== null);
  const answered = isAnswered(part);
  const state = failed ? "Failed" : queued ? "Waiting" : stateOf(part);
  const took = part.duration_ms !== undefined && part.state === "done" ? ` · ${formatDuration(part.duration_ms)}` : "";
  const exit = exitCode === null ? "" : ` · exit code ${exitCode}`;
  return (
    <Card
      label={`Tool ${part.name}`}
      icon="tool"
      className={failed ? styles.failed : styles[part.state]}
      header={
        <>
          <span className={styles.toolName}>{toolLabel(escapeInvisible(part.name)) || "Tool"}</span>
          <span className={classNames(text.ellipsis, styles.summary)}>
            {escapeInvisible(summarizeArguments(part.args))}
          </span>
          <span className={styles.toolState}>
            {state}
            {exit}
            {took}
          </span>
        </>
      }
      expanded={choice ?? (part.state === "running" || part.state === "unknown" || part.is_error || failed || answered)}
      onToggle={setChoice}
    >
      {!answered && <CallDetails args={part.args} />}
      {part.state === "unknown" && (
        <p className={text.quiet}>
          The server restarted while this was running. It may have finished; check before you run it again.
        </p>
      )}
      {part.output && !repeatsOutput(part) && <ValueBlock name="Output" value={part.output} />}
      {part.state === "denied" && <ValueBlock name="Reason" value={part.result} />}
      {part.state === "done" && !isSkipped(part) && <ValueBlock name={resultName(part)} value={part.result} />}
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

const MISSING_FILES = { not_in_export: "Not in the export", not_imported: "Not imported" } as const;

export function FileCard({ part }: { part: FilePart }) {
  if (part.missing) {
    return (
      <span className={text.chip}>
        <Icon name="file" />
        <span>{part.name}</span>
        <span className={text.quiet}>{MISSING_FILES[part.missing]}</span>
      </span>
    );
  }
  const href = withRoot(`/api/files/${part.file_id}/content`);
  if (part.media_type.startsWith("image/")) {
    return (
      <button
        type="button"
        className={styles.image}
        data-image
        aria-haspopup="dialog"
        title={part.name}
        onClick={(event) => openLightbox(event.currentTarget)}
      >
        <img src={href} alt={part.name} loading="lazy" />
      </button>
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
    <details className={styles.memory}>
      <summary>
        <Icon name="spark" />
        <span>{items.length ? `Used ${items.length} ${items.length === 1 ? "memory" : "memories"}` : "Memory"}</span>
        {note && <span className={classNames(text.ellipsis, styles.summary)}>{note}</span>}
      </summary>
      <ul>
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

// Folds a run's events into its message: the same function as `holdfast.core.transcript.fold`, tested on the same
// recorded journals. Values are never mutated, so views can compare parts by identity.

import { beginsByPosition, hasOpenStep } from "./steps.ts";
import type {
  ApprovalRequest,
  Ending,
  EventData,
  Failure,
  InputRequest,
  Json,
  KnownRunEvent,
  MessageStatus,
  Part,
  ReasoningPart,
  RetryNotice,
  RunEvent,
  TextPart,
  ToolPart,
  ToolState,
  Usage,
} from "./types.ts";
import { PART_TYPES } from "./types.ts";

export interface Transcript {
  readonly parts: readonly Part[];
  readonly status: MessageStatus;
  readonly reason: string | null;
  readonly error: Failure | null;
  readonly usage: Usage | null;
  /** The model of the newest step. */
  readonly model: string | null;
  /** The approval that is waiting for a decision. */
  readonly approval: ApprovalRequest | null;
  /** The open question of a running tool's server. */
  readonly input: InputRequest | null;
  /** Set while the newest event is that a request to the model is repeated. */
  readonly retrying: RetryNotice | null;
  readonly lastSeq: number;
  /** When the reasoning in progress began, if the journal has times. */
  readonly thinkingSince: number | null;
  /** How many model calls the journal records. */
  readonly steps: number;
  /** Whether a step has begun and has no part yet. */
  readonly stepBegan: boolean;
}

export const EMPTY: Transcript = {
  parts: [],
  status: "streaming",
  reason: null,
  error: null,
  usage: null,
  model: null,
  approval: null,
  input: null,
  retrying: null,
  lastSeq: 0,
  thinkingSince: null,
  steps: 0,
  stepBegan: false,
};

/** Finish reasons of answers that the model did not end itself. */
const CUT_SHORT = new Set(["length", "content_filter"]);

export class BrokenSequenceError extends Error {}

const ENDINGS = {
  "run.complete": "complete",
  "run.cancelled": "cancelled",
  "run.failed": "failed",
  "run.interrupted": "interrupted",
} as const satisfies Record<string, Ending>;

const ENDS_REASONING = new Set([
  "text.delta",
  "tool.delta",
  "tool.started",
  "approval.requested",
  "step.started",
  "plan.updated",
  "message.steered",
]);
/** The duration of the reasoning before these is unknown: a crash may lie between. */
const CUTS_REASONING = new Set([...Object.keys(ENDINGS), "run.resumed", "message.seeded", "memory.recalled"]);
export const isTerminal = (type: string): type is keyof typeof ENDINGS => type in ENDINGS;

/** Returns the transcript after `events`, which must follow `base` without a gap. */
export function fold(events: Iterable<RunEvent>, base: Transcript = EMPTY): Transcript {
  const builder = new TranscriptBuilder(base);
  for (const event of events) builder.add(event);
  return builder.build();
}

class TranscriptBuilder {
  private parts: Part[];
  private rest: Omit<Transcript, "parts">;
  /** Where the newest tool part of each call id is, among the first `indexed` parts. */
  private toolsAt = new Map<string, number>();
  private indexed = 0;

  constructor(base: Transcript) {
    this.parts = [...base.parts];
    this.rest = base;
  }

  build(): Transcript {
    return { ...this.rest, parts: this.parts };
  }

  add(event: RunEvent): void {
    const { seq, type, data } = event;
    if (seq !== this.rest.lastSeq + 1) {
      throw new BrokenSequenceError(`Event ${seq} follows event ${this.rest.lastSeq}: the stream has a gap.`);
    }
    if (this.rest.status !== "streaming") throw new BrokenSequenceError(`Event ${seq} follows the terminal event.`);
    this.set({ lastSeq: seq, retrying: null });
    const at = typeof data.at === "number" ? data.at : null;
    if (this.rest.thinkingSince !== null) {
      if (ENDS_REASONING.has(type)) this.endReasoning(at);
      else if (CUTS_REASONING.has(type)) this.set({ thinkingSince: null });
    }
    this.apply(event as KnownRunEvent, at);
  }

  private set(fields: Partial<Omit<Transcript, "parts">>): void {
    this.rest = { ...this.rest, ...fields };
  }

  /** Events of unknown types match no case and are ignored. */
  private apply(event: KnownRunEvent, at: number | null): void {
    switch (event.type) {
      case "step.retrying":
        return this.set({ retrying: event.data });
      case "text.delta":
        return this.addText(event.data.text);
      case "reasoning.delta":
        return this.addReasoning(event.data.text, event.data.provider ?? null, at);
      case "step.started":
        return this.set({
          model: event.data.model ?? this.rest.model,
          steps: this.rest.steps + 1,
          stepBegan: !hasOpenStep(this.parts),
        });
      case "run.resumed":
        this.set({ input: null });
        return this.settleTools({ running: "unknown", pending: "not_run" });
      case "message.seeded":
        this.parts.push(...event.data.parts.filter((part) => PART_TYPES.has(part.type)));
        return;
      case "tool.delta":
        return this.addToolDelta(event.data);
      case "tool.started":
        return this.putTool(event.data, "running");
      case "tool.finished":
        return this.finishTool(event.data);
      case "approval.requested": {
        const { approval_id, call_id, name, args = null, reason = "", always = true } = event.data;
        const { options = null, expires_at = null } = event.data;
        this.putTool(event.data, "waiting");
        return this.set({ approval: { approval_id, call_id, name, args, reason, always, options, expires_at } });
      }
      case "approval.resolved":
        return this.resolveApproval(event.data.approval_id, event.data.decision, event.data.reason ?? null);
      case "input.requested":
        return this.set({ input: event.data });
      case "input.resolved":
        if (this.rest.input?.request_id === event.data.request_id) this.set({ input: null });
        return;
      case "memory.recalled": {
        const { items, note } = event.data;
        this.parts.push({ type: "remembered", items, ...(note == null ? {} : { note }) });
        return;
      }
      case "plan.updated": {
        const plan = { type: "plan" as const, entries: event.data.entries };
        const index = this.parts.findLastIndex((part) => part.type === "plan");
        if (index < 0) this.parts.push(plan);
        else this.parts[index] = plan;
        return;
      }
      case "message.steered": {
        const { id, text } = event.data;
        this.parts.push({ type: "steered", id, text });
        return;
      }
      case "usage":
        return this.set({ usage: sumUsage(this.rest.usage, event.data) });
      case "run.complete":
      case "run.cancelled":
      case "run.failed":
      case "run.interrupted":
        this.settleTools({ running: "unknown", pending: "not_run", waiting: "not_run" });
        return this.set({
          status: ENDINGS[event.type],
          reason: event.data.reason ?? cutShort(event.data.finish_reason),
          error: event.data.error ?? null,
          approval: null,
          input: null,
        });
    }
  }

  private addText(text: string): void {
    if (!text) return;
    const last = this.parts.at(-1);
    if (last?.type === "text" && !this.rest.stepBegan) {
      this.parts[this.parts.length - 1] = { ...last, text: last.text + text };
    } else this.push({ type: "text", text });
  }

  /** Adds a part; it says whether it begins a step if its position does not tell. */
  private push(part: TextPart | ReasoningPart | ToolPart): void {
    const begins = this.rest.stepBegan;
    const told = this.rest.steps === 0 || begins === beginsByPosition(this.parts, this.parts.length, part.type);
    if (begins) this.set({ stepBegan: false });
    this.parts.push(told ? part : { ...part, begins_step: begins });
  }

  private endReasoning(at: number | null): void {
    const since = this.rest.thinkingSince;
    this.set({ thinkingSince: null });
    const last = this.parts.at(-1);
    if (since === null || at === null || at <= since || last?.type !== "reasoning") return;
    this.parts[this.parts.length - 1] = { ...last, duration_ms: at - since };
  }

  /** Opaque provider data closes a reasoning block; what follows is another block with its own data. */
  private addReasoning(text: string, provider: Json, at: number | null): void {
    if (!text && provider === null) return;
    const last = this.parts.at(-1);
    const open = last?.type === "reasoning" && last.provider === undefined && !this.rest.stepBegan ? last : null;
    if (last?.type === "reasoning" && !open) this.endReasoning(at);
    const grown: ReasoningPart = { type: "reasoning", ...open, text: (open?.text ?? "") + text };
    if (this.rest.thinkingSince === null && at !== null) {
      this.set({ thinkingSince: at - (open?.duration_ms ?? 0) });
    }
    const closed = provider === null ? grown : { ...grown, provider };
    if (open) this.parts[this.parts.length - 1] = closed;
    else this.push(closed);
  }

  /** Finds the newest part of a call: a provider may reuse an id in a later step. */
  private findTool(callId: string): { index: number; tool: ToolPart } | null {
    for (; this.indexed < this.parts.length; this.indexed++) {
      const part = this.parts[this.indexed];
      if (part?.type === "tool") this.toolsAt.set(part.call_id, this.indexed);
    }
    const index = this.toolsAt.get(callId) ?? -1;
    const tool = this.parts[index];
    return tool?.type === "tool" ? { index, tool } : null;
  }

  private findOpenTool(callId: string): { index: number; tool: ToolPart } | null {
    const found = this.findTool(callId);
    return found && ["done", "denied"].includes(found.tool.state) ? null : found;
  }

  /** A call that may have run is only reused by the same tool with the same arguments. */
  private putTool(call: EventData["tool.started"], state: ToolState): void {
    const { call_id, name, args = null, provider, args_text } = call;
    const found = this.findOpenTool(call_id);
    const old = found?.tool;
    if (!old || (old.state === "unknown" && !(old.name === name && deepEqual(old.args, args)))) {
      this.push(toolPart({ ...newTool(call_id, name, args, state), provider, args_text }));
      return;
    }
    const may_have_run =
      state !== "running" && (["unknown", "running"].includes(old.state) || old.may_have_run === true);
    const fields = { ...old, name, args, state, provider: provider ?? old.provider, may_have_run, args_text };
    this.parts[found.index] = toolPart(fields);
  }

  private finishTool(data: EventData["tool.finished"]): void {
    const found = this.findTool(data.call_id);
    if (!found) return;
    const { result = null, is_error, duration_ms } = data;
    const fields = { ...found.tool, state: "done" as const, result, is_error: is_error === true, duration_ms };
    this.parts[found.index] = toolPart(fields);
    this.parts.push(...(data.files ?? []));
  }

  private resolveApproval(approvalId: string, decision: string, reason: Json): void {
    if (this.rest.approval?.approval_id !== approvalId) return;
    const found = this.findTool(this.rest.approval.call_id);
    if (found) {
      this.parts[found.index] =
        decision === "deny"
          ? toolPart({ ...found.tool, state: "denied", result: reason, may_have_run: false })
          : toolPart({ ...found.tool, state: "pending" });
    }
    this.set({ approval: null });
  }

  private addToolDelta({ call_id, name, args_delta, output_delta }: EventData["tool.delta"]): void {
    const found = this.findOpenTool(call_id);
    // The model rewrites a call that an earlier execution left behind. A call that may have run stays as it is.
    const rewrites = name != null || args_delta != null;
    const old = rewrites && found?.tool.state === "unknown" ? null : found;
    let tool = old?.tool ?? newTool(call_id, name ?? "", "", "pending");
    if (rewrites && tool.state === "not_run") tool = newTool(call_id, tool.name, "", "pending");
    if (name != null) tool = { ...tool, name };
    if (output_delta != null) tool = toolPart({ ...tool, output: (tool.output ?? "") + output_delta });
    if (args_delta != null && typeof tool.args === "string") tool = { ...tool, args: tool.args + args_delta };
    if (old) this.parts[old.index] = tool;
    else this.push(tool);
  }

  private settleTools(ends: Partial<Record<ToolState, ToolState>>): void {
    this.parts = this.parts.map((part) => {
      const end = part.type === "tool" ? ends[part.state] : undefined;
      if (part.type !== "tool" || !end) return part;
      return toolPart({ ...part, state: part.may_have_run ? "unknown" : end, may_have_run: false });
    });
  }
}

/** The reason of a complete answer that was cut short, as the stored message has it. */
function cutShort(finishReason: string | null | undefined): string | null {
  return finishReason && CUT_SHORT.has(finishReason) ? finishReason : null;
}

function newTool(call_id: string, name: string, args: Json, state: ToolState): ToolPart {
  return { type: "tool", call_id, name, args, result: null, is_error: false, state };
}

type OptionalToolField = "output" | "duration_ms" | "provider" | "may_have_run" | "args_text";
type ToolFields = Omit<ToolPart, OptionalToolField> & {
  output?: string | undefined;
  duration_ms?: number | null | undefined;
  provider?: Json | undefined;
  may_have_run?: boolean | undefined;
  args_text?: string | undefined;
};

/** Leaves out optional fields without a value, as the server does. */
function toolPart({ output, duration_ms, provider, may_have_run, args_text, ...required }: ToolFields): ToolPart {
  return {
    ...required,
    ...(output ? { output } : {}),
    ...(duration_ms == null ? {} : { duration_ms }),
    ...(provider == null ? {} : { provider }),
    ...(may_have_run ? { may_have_run } : {}),
    ...(args_text == null ? {} : { args_text }),
  };
}

/** Compares JSON values. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const right = new Map<string, unknown>(Object.entries(b));
  const left = Object.entries(a);
  return left.length === right.size && left.every(([key, value]) => right.has(key) && deepEqual(value, right.get(key)));
}

function sumUsage(a: Usage | null, b: EventData["usage"]): Usage {
  const sum = (field: "cost" | "cached_tokens" | "reasoning_tokens") =>
    a?.[field] == null && b[field] == null ? null : (a?.[field] ?? 0) + (b[field] ?? 0);
  return {
    input_tokens: (a?.input_tokens ?? 0) + b.input_tokens,
    output_tokens: (a?.output_tokens ?? 0) + b.output_tokens,
    cost: sum("cost"),
    cached_tokens: sum("cached_tokens"),
    reasoning_tokens: sum("reasoning_tokens"),
  };
}

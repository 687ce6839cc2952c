// The fold of a run's events into its message: the same function as `holdfast.core.transcript.fold`, tested on the same
// recorded journals. Values are never changed in place, so a view can compare parts by identity.

import type {
  ApprovalRequest,
  Ending,
  Entry,
  Failure,
  Json,
  JsonObject,
  MessageStatus,
  Part,
  ReasoningPart,
  ToolPart,
  ToolState,
  Usage,
} from "./wire.ts";
import { PART_TYPES } from "./wire.ts";

export interface Transcript {
  readonly parts: readonly Part[];
  readonly status: MessageStatus;
  readonly reason: string | null;
  readonly error: Failure | null;
  readonly usage: Usage | null;
  /** The question that is still open. */
  readonly approval: ApprovalRequest | null;
  readonly lastSeq: number;
  /** When the reasoning began that is still going on, if the journal says so. */
  readonly thinkingSince: number | null;
}

export const EMPTY: Transcript = {
  parts: [],
  status: "streaming",
  reason: null,
  error: null,
  usage: null,
  approval: null,
  lastSeq: 0,
  thinkingSince: null,
};

export class BrokenSequence extends Error {}

const ENDINGS: Readonly<Record<string, Ending>> = {
  "run.complete": "complete",
  "run.cancelled": "cancelled",
  "run.failed": "failed",
  "run.interrupted": "interrupted",
};

const ENDS_A_THOUGHT = new Set(["text.delta", "tool.delta", "tool.started", "approval.requested", "step.started"]);
/** After these nobody knows how long it was: a crash may lie between. */
const CUTS_A_THOUGHT = new Set([...Object.keys(ENDINGS), "run.resumed", "message.seeded", "memory.recalled"]);

export const isTerminal = (type: string): boolean => type in ENDINGS;

/** The transcript after `entries`, which must follow `onto` without a gap. */
export function fold(entries: Iterable<Entry>, onto: Transcript = EMPTY): Transcript {
  const draft = new Draft(onto);
  for (const entry of entries) draft.add(entry);
  return draft.done();
}

class Draft {
  private parts: Part[];
  private rest: Omit<Transcript, "parts">;

  constructor(onto: Transcript) {
    this.parts = [...onto.parts];
    this.rest = onto;
  }

  done(): Transcript {
    return { ...this.rest, parts: this.parts };
  }

  add(entry: Entry): void {
    const { seq, type, data } = entry;
    if (seq !== this.rest.lastSeq + 1) {
      throw new BrokenSequence(`Event ${seq} follows event ${this.rest.lastSeq}: the stream has a gap.`);
    }
    if (this.rest.status !== "streaming") throw new BrokenSequence(`Event ${seq} follows the terminal event.`);
    this.rest = { ...this.rest, lastSeq: seq };
    const at = typeof data.at === "number" ? data.at : null;
    if (this.rest.thinkingSince !== null) {
      if (ENDS_A_THOUGHT.has(type)) this.thought(at);
      else if (CUTS_A_THOUGHT.has(type)) this.rest = { ...this.rest, thinkingSince: null };
    }
    const ending = ENDINGS[type];
    if (ending) this.end(ending, data);
    else this.apply(type, data, at);
  }

  private apply(type: string, data: JsonObject, at: number | null): void {
    switch (type) {
      case "text.delta":
        return this.text(str(data.text));
      case "reasoning.delta":
        return this.reason(str(data.text), data.provider ?? null, at);
      case "run.resumed":
        return this.settleTools({ running: "unknown", pending: "not_run" });
      case "message.seeded":
        this.parts.push(...(data.parts as unknown as Part[]).filter((part) => PART_TYPES.has(part.type)));
        return;
      case "tool.delta":
        return this.toolDelta(data);
      case "tool.started":
        return this.putTool(str(data.call_id), str(data.name), data.args ?? null, "running", data.provider ?? null);
      case "tool.finished":
        return this.finishTool(data);
      case "approval.requested":
        this.putTool(str(data.call_id), str(data.name), data.args ?? null, "waiting", data.provider ?? null);
        this.rest = { ...this.rest, approval: { reason: "", ...data } as unknown as ApprovalRequest };
        return;
      case "approval.resolved":
        return this.resolve(str(data.approval_id), str(data.decision), data.reason ?? null);
      case "memory.recalled":
        this.parts.push({
          type: "remembered",
          items: data.items as unknown as JsonObject[],
          ...(typeof data.note === "string" ? { note: data.note } : {}),
        });
        return;
      case "usage":
        this.rest = { ...this.rest, usage: sum(this.rest.usage, data as unknown as Usage) };
        return;
      default: // run.started, step.started, and what this version does not know
    }
  }

  private end(status: Ending, data: JsonObject): void {
    this.settleTools({ running: "unknown", pending: "not_run", waiting: "not_run" });
    this.rest = {
      ...this.rest,
      status,
      reason: (data.reason as string | undefined) ?? null,
      error: (data.error as unknown as Failure | undefined) ?? null,
      approval: null,
    };
  }

  private text(text: string): void {
    if (!text) return;
    const last = this.parts.at(-1);
    if (last?.type === "text") this.parts[this.parts.length - 1] = { ...last, text: last.text + text };
    else this.parts.push({ type: "text", text });
  }

  /** Something else has come: the reasoning before it took until now. */
  private thought(at: number | null): void {
    const since = this.rest.thinkingSince;
    this.rest = { ...this.rest, thinkingSince: null };
    const last = this.parts.at(-1);
    if (since === null || at === null || at <= since || last?.type !== "reasoning") return;
    this.parts[this.parts.length - 1] = { ...last, duration_ms: at - since };
  }

  /** Opaque data closes a block of reasoning: what follows is another block, with data of its own. */
  private reason(text: string, provider: Json, at: number | null): void {
    if (!text && provider === null) return;
    const last = this.parts.at(-1);
    const open = last?.type === "reasoning" && last.provider === undefined ? last : null;
    if (last?.type === "reasoning" && !open) this.thought(at);
    const grown: ReasoningPart = { type: "reasoning", ...open, text: (open?.text ?? "") + text };
    if (this.rest.thinkingSince === null && at !== null) {
      this.rest = { ...this.rest, thinkingSince: at - (open?.duration_ms ?? 0) };
    }
    const closed = provider === null ? grown : { ...grown, provider };
    if (open) this.parts[this.parts.length - 1] = closed;
    else this.parts.push(closed);
  }

  /** The newest part of this call: a provider may use an id again in a later step. */
  private find(callId: string): number {
    return this.parts.findLastIndex((part) => part.type === "tool" && part.call_id === callId);
  }

  private tool(at: number): ToolPart {
    return this.parts[at] as ToolPart;
  }

  private findOpen(callId: string): number {
    const at = this.find(callId);
    return at >= 0 && ["done", "denied"].includes(this.tool(at).state) ? -1 : at;
  }

  /** A call that may have run before is taken up again only by the same tool with the same arguments. */
  private putTool(callId: string, name: string, args: Json, state: ToolState, provider: Json): void {
    const at = this.findOpen(callId);
    const old = at < 0 ? null : this.tool(at);
    if (!old || (old.state === "unknown" && !(old.name === name && same(old.args, args)))) {
      this.parts.push(clean({ ...newTool(callId, name, args, state), provider }));
      return;
    }
    const again = state !== "running" && (old.state === "unknown" || old.may_have_run === true);
    const kept = provider ?? old.provider ?? null;
    this.parts[at] = clean({ ...old, name, args, state, provider: kept, may_have_run: again });
  }

  private finishTool(data: JsonObject): void {
    const at = this.find(str(data.call_id));
    if (at < 0) return;
    this.parts[at] = clean({
      ...this.tool(at),
      state: "done",
      result: data.result ?? null,
      is_error: data.is_error === true,
      duration_ms: (data.duration_ms as number | null | undefined) ?? null,
    });
  }

  private resolve(approvalId: string, decision: string, reason: Json): void {
    if (this.rest.approval?.approval_id !== approvalId) return;
    const at = this.find(this.rest.approval.call_id);
    if (at >= 0) {
      const tool = this.tool(at);
      this.parts[at] =
        decision === "deny"
          ? clean({ ...tool, state: "denied", result: reason, may_have_run: false })
          : clean({ ...tool, state: "pending" });
    }
    this.rest = { ...this.rest, approval: null };
  }

  private toolDelta(data: JsonObject): void {
    const callId = str(data.call_id);
    const name = (data.name as string | undefined) ?? null;
    const args = (data.args_delta as string | undefined) ?? null;
    const output = (data.output_delta as string | undefined) ?? null;
    let at = this.findOpen(callId);
    if (at >= 0 && (name !== null || args !== null)) at = this.writeAgain(at);
    if (at < 0) {
      at = this.parts.length;
      this.parts.push(newTool(callId, name ?? "", "", "pending"));
    } else if (name !== null) this.parts[at] = { ...this.tool(at), name };
    const tool = this.tool(at);
    if (output !== null) this.parts[at] = clean({ ...tool, output: (tool.output ?? "") + output });
    if (args !== null && typeof tool.args === "string") {
      this.parts[at] = { ...this.tool(at), args: tool.args + args };
    }
  }

  /** The model writes a call anew that an earlier life left behind. One that may have run stays as it is. */
  private writeAgain(at: number): number {
    const old = this.tool(at);
    if (old.state === "unknown") return -1;
    if (old.state === "not_run") this.parts[at] = newTool(old.call_id, old.name, "", "pending");
    return at;
  }

  private settleTools(ends: Partial<Record<ToolState, ToolState>>): void {
    this.parts = this.parts.map((part) => {
      const end = part.type === "tool" ? ends[part.state] : undefined;
      if (part.type !== "tool" || !end) return part;
      return clean({ ...part, state: part.may_have_run ? "unknown" : end, may_have_run: false });
    });
  }
}

const str = (value: Json | undefined): string => (typeof value === "string" ? value : "");

function newTool(call_id: string, name: string, args: Json, state: ToolState): ToolPart {
  return { type: "tool", call_id, name, args, result: null, is_error: false, state };
}

type Loose<T> = { [K in keyof T]: K extends "duration_ms" | "provider" | "may_have_run" ? unknown : T[K] };

/** As the server writes a tool part: optional fields that say nothing are left out. */
function clean(part: Loose<ToolPart> & { output?: string }): ToolPart {
  const { output, duration_ms, provider, may_have_run, ...always } = part;
  return {
    ...always,
    ...(output ? { output } : {}),
    ...(duration_ms === null || duration_ms === undefined ? {} : { duration_ms: duration_ms as number }),
    ...(provider === null || provider === undefined ? {} : { provider: provider as Json }),
    ...(may_have_run === true ? { may_have_run: true as const } : {}),
  };
}

export function same(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as JsonObject, b as JsonObject];
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => key in right && same(left[key] as Json, right[key] as Json))
  );
}

function sum(a: Usage | null, b: Usage): Usage {
  const cost = a?.cost == null && b.cost == null ? null : (a?.cost ?? 0) + (b.cost ?? 0);
  return {
    input_tokens: (a?.input_tokens ?? 0) + b.input_tokens,
    output_tokens: (a?.output_tokens ?? 0) + b.output_tokens,
    cost,
  };
}

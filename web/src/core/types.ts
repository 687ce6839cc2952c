// Short names for the generated API types, and the types of run events, which OpenAPI does not describe. Unknown
// fields, events and parts are ignored wherever they are read.

import type * as api from "./api-types.ts";
import type { Json } from "./api-types.ts";

export type { Json };
export type JsonObject = { readonly [key: string]: Json };

export const isJsonObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export type Session = api.SessionResponse;
export type Message = api.MessageResponse;
export type Run = api.RunResponse;
export type QueuedRun = api.AcceptedRunResponse;
export type Model = api.ModelDetailsResponse;
export type Agent = api.AgentResponse;

export type Part = api.PartResponse;
export type TextPart = api.TextPartResponse;
export type ReasoningPart = api.ReasoningPartResponse;
export type ToolPart = api.ToolPartResponse;
export type FilePart = api.FilePartResponse;
export type RememberedPart = api.RememberedPartResponse;
export type PlanPart = api.PlanPartResponse;
export type SteeredPart = api.SteeredPartResponse;
export const PART_TYPES: ReadonlySet<string> = new Set([
  "text",
  "reasoning",
  "tool",
  "file",
  "remembered",
  "plan",
  "steered",
]);

export type ToolState = ToolPart["state"];
export type MessageStatus = Message["status"];
export type Ending = Exclude<MessageStatus, "streaming">;
export type RunStatus = Run["status"];
export type Decision = api.ApprovalDecisionRequest["decision"];
export type Failure = api.FailureResponse;
export type Usage = api.UsageResponse;
export type Recovery = api.RecoveryResponse;

export type ApprovalRequest = {
  readonly approval_id: string;
  readonly call_id: string;
  readonly name: string;
  readonly args: Json;
  readonly reason: string;
  /** False if the decision "always" would count as "once". */
  readonly always: boolean;
  /** The choices of an agent that has its own. */
  readonly options: readonly ApprovalOption[] | null;
  /** When the agent denies by itself, in milliseconds since the epoch. */
  readonly expires_at: number | null;
};

export type ApprovalOption = Readonly<{ id: string; name: string; decision: Decision }>;

/** A tool's server asks the user something while the tool runs. */
export type InputRequest = Readonly<{
  request_id: string;
  call_id: string;
  server: string;
  /** "sampling": it wants to use the model of the chat. */
  kind: "form" | "sampling";
  message: string;
  schema?: Json;
  expires_in?: number;
}>;
export type InputAnswer = api.InputAnswerRequest;

/** The model's provider did not answer and is asked again. */
export type RetryNotice = Readonly<{ attempt: number; attempts: number; delay_ms: number; message: string }>;

/** One event of a run's journal. Events of unknown types are kept, and ignored by the fold. */
export type RunEvent = { readonly seq: number; readonly type: string; readonly data: JsonObject };

type TerminalData = Readonly<{ reason?: string | null; finish_reason?: string | null; error?: Failure | null }>;

export type EventData = {
  "run.resumed": { readonly epoch: number };
  "message.seeded": { readonly from_run: string; readonly parts: readonly Part[] };
  "step.retrying": RetryNotice;
  "step.started": { readonly index: number; readonly model?: string | null };
  "text.delta": { readonly text: string };
  "reasoning.delta": { readonly text: string; readonly provider?: Json };
  "tool.delta": {
    readonly call_id: string;
    readonly name?: string | null;
    readonly args_delta?: string | null;
    readonly output_delta?: string | null;
  };
  "tool.started": Readonly<{ call_id: string; name: string; args: Json; provider?: Json; args_text?: string }>;
  "tool.finished": Readonly<{
    call_id: string;
    result: Json;
    is_error: boolean;
    duration_ms?: number | null;
    files?: readonly FilePart[];
  }>;
  "approval.requested": ApprovalRequest & { readonly provider?: Json; readonly args_text?: string };
  "approval.resolved": { readonly approval_id: string; readonly decision: Decision; readonly reason?: Json };
  "input.requested": InputRequest;
  "input.resolved": { readonly request_id: string; readonly action: InputAnswer["action"]; readonly reason?: string };
  "plan.updated": Readonly<Pick<PlanPart, "entries">>;
  "message.steered": Readonly<Pick<SteeredPart, "id" | "text">>;
  "memory.recalled": { readonly items: readonly JsonObject[]; readonly note?: string | null };
  usage: Pick<Usage, "input_tokens" | "output_tokens"> & Partial<Usage>;
  "run.complete": TerminalData;
  "run.cancelled": TerminalData;
  "run.failed": TerminalData;
  "run.interrupted": TerminalData;
};

/** The events that the fold applies, each with the type of its data. */
export type KnownRunEvent = {
  [Type in keyof EventData]: { readonly seq: number; readonly type: Type; readonly data: EventData[Type] };
}[keyof EventData];

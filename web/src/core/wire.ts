// What the server says, as JSON. Unknown fields, events and parts are ignored wherever they are read.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type ToolState = "pending" | "waiting" | "running" | "done" | "denied" | "unknown" | "not_run";

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: Json;
  readonly duration_ms?: number;
}
export interface ToolPart {
  readonly type: "tool";
  readonly call_id: string;
  readonly name: string;
  readonly args: Json;
  readonly result: Json;
  readonly is_error: boolean;
  readonly state: ToolState;
  readonly output?: string;
  readonly duration_ms?: number;
  readonly provider?: Json;
  readonly may_have_run?: true;
}
export interface FilePart {
  readonly type: "file";
  readonly file_id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
}
export interface RememberedPart {
  readonly type: "remembered";
  readonly items: readonly JsonObject[];
  readonly note?: string;
}
export type Part = TextPart | ReasoningPart | ToolPart | FilePart | RememberedPart;
export const PART_TYPES: ReadonlySet<string> = new Set(["text", "reasoning", "tool", "file", "remembered"]);

export type Ending = "complete" | "cancelled" | "failed" | "interrupted";
export type MessageStatus = "streaming" | Ending;
export type RunStatus = "queued" | "running" | "waiting" | Ending;
export type Decision = "once" | "session" | "always" | "deny";

export interface Failure {
  readonly code: string;
  readonly message: string;
}
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost?: number | null;
}
export interface Recovery {
  readonly state: "pending" | "recovered" | "none";
}

export interface Message {
  readonly id: string;
  readonly session_id: string;
  readonly role: "user" | "assistant";
  readonly parent_id: string | null;
  readonly run_id: string | null;
  readonly status: MessageStatus;
  readonly parts: readonly Part[];
  readonly reason: string | null;
  readonly error: Failure | null;
  readonly recovery: Recovery | null;
  readonly siblings: readonly string[];
  readonly model: string | null;
  readonly usage: Usage | null;
  readonly idempotency_key: string | null;
  readonly created_at: string;
  readonly last_seq: number;
}

export interface Run {
  readonly id: string;
  readonly session_id: string;
  readonly message_id: string;
  readonly user_message_id: string;
  readonly status: RunStatus;
  readonly reason: string | null;
  readonly lifetime: "detached" | "attached";
  readonly model: string | null;
  readonly agent: string | null;
  readonly usage: Usage | null;
  readonly error: Failure | null;
  readonly recovery: Recovery | null;
  readonly cancel_requested: boolean;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly last_seq: number;
}

export interface Queued {
  readonly run: Run;
  readonly message: Message;
}

export interface Session {
  readonly id: string;
  readonly title: string;
  readonly agent: string;
  readonly model: string | null;
  readonly settings?: JsonObject | null;
  readonly pinned: boolean;
  readonly archived: boolean;
  readonly tags: readonly string[];
  readonly project: string | null;
  readonly head: string | null;
  readonly can_redo: boolean;
  readonly active_run: string | null;
  readonly queued_runs: readonly Queued[];
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly match?: { readonly message_id: string | null; readonly excerpt: string } | null;
}

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly context: number | null;
  readonly abilities: readonly string[];
  readonly available: boolean;
  readonly reason: string | null;
}
export interface Agent {
  readonly name: string;
  readonly can_continue: boolean;
}
export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
}
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}
export interface Accepted {
  readonly run: Run;
  readonly message: Message;
}

/** One event in its place. */
export interface Entry {
  readonly seq: number;
  readonly type: string;
  readonly data: JsonObject;
}

export interface ApprovalRequest {
  readonly approval_id: string;
  readonly call_id: string;
  readonly name: string;
  readonly args: Json;
  readonly reason: string;
}

export type InputPart = { type: "text"; text: string } | { type: "file"; file_id: string };

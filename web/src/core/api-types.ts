// Generated from the server's schemas by web/generate_types.py; do not edit.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A run with the user message that it answers. */
export type AcceptedRunResponse = {
  readonly run: RunResponse;
  readonly message: MessageResponse;
};

export type AgentCommandResponse = {
  readonly name: string;
  readonly description: string;
  /** What to type after it; null if it takes nothing. */
  readonly hint: string | null;
};

export type AgentDirectoriesResponse = {
  /** Directories below which one can be chosen; empty: none can be. */
  readonly allowed: readonly string[];
  /** Those of recent sessions, newest first. */
  readonly recent: readonly string[];
};

export type AgentDirectoryRequest = {
  /** The directory that an agent program works in, an absolute path on the server; without it, a directory of the session's own. Also stored as `settings.cwd`. */
  readonly path: string;
};

export type AgentDirectoryResponse = {
  /** The directory without links. */
  readonly path: string;
};

export type AgentListResponse = {
  readonly items: readonly AgentResponse[];
};

export type AgentOptionChoiceResponse = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
};

export type AgentOptionResponse = {
  readonly id: string;
  readonly name: string;
  /** mode, model, thought_level, another word, or empty. */
  readonly category: string;
  readonly value: string | boolean;
  /** What the program begins a new session with. */
  readonly default: string | boolean;
  readonly choices: readonly AgentOptionChoiceResponse[];
};

/** What an agent program offers in a session, as far as it is known: from its last session, or a test. */
export type AgentOptionsResponse = {
  readonly options: readonly AgentOptionResponse[];
  readonly commands: readonly AgentCommandResponse[];
};

/** A program that speaks the Agent Client Protocol. */
export type AgentRequest = {
  readonly command: string;
  readonly args?: readonly string[];
  /** Environment variables of the program. They are stored and never returned; null keeps a value. */
  readonly env?: { readonly [key: string]: Json } | null;
  readonly cwd?: string | null;
};

export type AgentResponse = {
  readonly name: string;
  readonly can_continue: boolean;
  readonly is_program: boolean;
  readonly available: boolean;
  readonly reason: string | null;
  /** The program and its arguments. */
  readonly command?: readonly string[];
  readonly cwd?: string | null;
  readonly env?: readonly string[];
  /** Whether it was added here, and can be changed and removed. */
  readonly editable?: boolean;
  /** A command that would download and start a missing program. It is never run by itself. */
  readonly npx_command?: readonly string[] | null;
};

export type AgentTestResponse = {
  readonly ok: boolean;
  readonly reason: string | null;
  readonly program: string | null;
  readonly version: string | null;
  /** What the program says it can do. */
  readonly capabilities: readonly string[];
  readonly login: readonly string[];
  /** Whether it opened no session because it needs a login. */
  readonly login_required: boolean;
  /** Why it opened no session. */
  readonly session_problem: string | null;
  readonly took_ms: number;
};

export type ApprovalDecisionRequest = {
  readonly decision: "once" | "session" | "always" | "deny";
  readonly option?: string | null;
};

export type BackupRequest = {
  readonly path: string;
};

export type ChangePasswordRequest = {
  readonly current?: string | null;
  readonly new: string;
};

export type CommitMemoryRequest = {
  readonly provider?: string | null;
};

export type CompareRequest = {
  readonly runs: readonly ComparedRunRequest[];
  /** Stored in the settings of the new sessions, which are then listed with `source=compare`. */
  readonly comparison?: ComparisonRequest | null;
};

export type ComparedRunRequest = {
  readonly session_id?: string | null;
  readonly input: MessageInput;
  readonly model?: string | null;
  readonly agent?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
};

export type ComparisonRequest = {
  readonly id: string;
  readonly blind?: boolean;
};

/** A known provider and its key, or the address of a server. */
export type ConnectProviderRequest = {
  readonly provider?: string | null;
  readonly base_url?: string | null;
  readonly key?: string | null;
};

export type ContinueRunRequest = {
  readonly model?: string | null;
  /** Ids of calls that were denied because nobody answered in time, and that are allowed now. Of several such requests for a run the first counts; a repeat returns its run. */
  readonly allow?: readonly string[];
};

export type CreateSessionRequest = {
  readonly title?: string | null;
  readonly agent?: string | null;
  readonly model?: string | null;
  readonly system?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly memory?: string | null;
  readonly cwd?: string | null;
  readonly agent_options?: { readonly [key: string]: string | boolean } | null;
  readonly previous_session_id?: string | null;
  readonly pinned?: boolean;
  readonly archived?: boolean;
  readonly tags?: readonly string[];
  readonly project?: string | null;
};

export type CreateTokenRequest = {
  readonly name: string;
};

export type CreatedTokenResponse = {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly token: string;
};

export type EditMessageRequest = {
  readonly message_id: string;
  readonly input: MessageInput;
  readonly model?: string | null;
};

export type EditQueuedRunRequest = {
  readonly input: MessageInput;
};

export type FactListResponse = {
  readonly items: readonly FactResponse[];
  readonly next: string | null;
  readonly confirm?: boolean;
};

export type FactResponse = {
  readonly id: string;
  readonly text: string;
  readonly session_id: string;
  readonly message_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly pinned: boolean;
  readonly confirmed: boolean;
};

export type FailureResponse = {
  readonly code: string;
  readonly message: string;
};

export type FilePartRequest = {
  readonly type: "file";
  readonly file_id: string;
};

export type FilePartResponse = {
  readonly type: "file";
  readonly file_id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  /** The tool call that returned the file. */
  readonly call_id?: string;
};

export type FileResponse = {
  readonly id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  readonly created_at: string;
};

export type GrantResponse = {
  readonly tool: string;
  readonly scope: string;
  readonly created_at: string;
};

export type HealthResponse = {
  readonly status: "ok";
};

export type ImportResponse = {
  readonly items: readonly ImportedSessionResponse[];
  readonly next: string | null;
};

export type ImportedSessionResponse = {
  readonly session_id: string;
  readonly title: string;
  /** Those that were added: of a chat imported before, only the new ones. */
  readonly messages: number;
  readonly files: number;
  readonly is_new: boolean;
  /** What was left out of the chat, and why. */
  readonly skipped: readonly string[];
};

/** An answer to the server of a running tool. `content` holds the values of an accepted form, by field. */
export type InputAnswerRequest = {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: { readonly [key: string]: string | boolean | number | readonly string[] };
};

export type LoginListResponse = {
  readonly items: readonly LoginResponse[];
  readonly next: string | null;
};

export type LoginRequest = {
  readonly password: string;
};

export type LoginResponse = {
  readonly id: string;
  readonly device: string;
  readonly address: string;
  /** When the password was entered. */
  readonly created_at: string;
  /** The last request, to within minutes. */
  readonly used_at: string;
  /** Whether this request belongs to it. */
  readonly current: boolean;
};

export type McpPromptArgumentResponse = {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
};

export type McpPromptListResponse = {
  readonly items: readonly McpPromptResponse[];
  readonly next: string | null;
};

export type McpPromptRequest = {
  readonly prompt: string;
  readonly arguments?: { readonly [key: string]: string };
};

export type McpPromptResponse = {
  readonly server: string;
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly McpPromptArgumentResponse[];
};

export type McpPromptTextResponse = {
  readonly text: string;
};

export type McpServerListResponse = {
  readonly items: readonly McpServerResponse[];
  readonly next: string | null;
};

/** A command to start, or the URL of a remote server. */
export type McpServerRequest = {
  readonly command?: string | null;
  readonly args?: readonly string[];
  /** Environment variables of the command. They are stored and never returned; null keeps a value. */
  readonly env?: { readonly [key: string]: Json } | null;
  readonly cwd?: string | null;
  readonly url?: string | null;
  /** Further headers of requests. They are stored and never returned; null keeps a value. */
  readonly headers?: { readonly [key: string]: Json } | null;
  /** Sent as `Authorization: Bearer …`. It is stored and never returned. */
  readonly token?: string | null;
};

export type McpServerResponse = {
  readonly name: string;
  readonly kind: "stdio" | "http";
  readonly target: string;
  readonly command?: string | null;
  readonly args?: readonly string[];
  readonly editable: boolean;
  readonly cwd?: string | null;
  readonly env?: readonly string[];
  readonly headers?: readonly string[];
  readonly has_token?: boolean;
  /** Whether OAuth can be used: no access token is set. */
  readonly can_sign_in?: boolean;
  /** Whether tokens of OAuth are stored. */
  readonly signed_in?: boolean;
  readonly connected: boolean;
  readonly failure: string | null;
  /** The end of the error output of a command. */
  readonly stderr?: string | null;
};

export type McpServerTestResponse = {
  readonly ok: boolean;
  readonly reason: string | null;
  readonly tools: readonly string[];
};

export type McpSignInResponse = {
  /** To be opened in the browser of the person. */
  readonly authorization_url: string;
};

export type MemoryCommitResponse = {
  readonly dirty_turns: number;
  readonly committing: boolean;
  readonly committed_turns: number;
  readonly last_error: string | null;
  readonly provider: string | null;
  readonly committed: number;
  readonly nothing_new: boolean;
};

export type MemoryProviderListResponse = {
  readonly items: readonly MemoryProviderResponse[];
};

export type MemoryProviderResponse = {
  readonly name: string;
  readonly default: boolean;
  readonly problem: string | null;
};

export type MemoryStatusResponse = {
  readonly dirty_turns: number;
  readonly committing: boolean;
  readonly committed_turns: number;
  readonly last_error: string | null;
  readonly provider: string | null;
};

export type MessageIdRequest = {
  readonly message_id: string;
};

export type MessageInput = string | readonly (TextPartRequest | FilePartRequest)[];

export type MessageListResponse = {
  readonly items: readonly MessageResponse[];
  readonly next: string | null;
};

export type MessageResponse = {
  readonly id: string;
  readonly session_id: string;
  readonly role: "user" | "assistant";
  readonly parent_id: string | null;
  readonly run_id: string | null;
  readonly status: "streaming" | "complete" | "cancelled" | "failed" | "interrupted";
  readonly parts: readonly PartResponse[];
  readonly reason: string | null;
  readonly error: FailureResponse | null;
  readonly recovery: RecoveryResponse | null;
  readonly siblings: readonly string[];
  readonly model: string | null;
  readonly usage: UsageResponse | null;
  readonly idempotency_key: string | null;
  readonly created_at: string;
  readonly last_seq: number;
};

export type ModelDetailsResponse = {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  readonly context: number | null;
  readonly abilities: readonly string[];
  readonly available: boolean;
  readonly reason: string | null;
};

export type ModelListResponse = {
  readonly items: readonly ModelDetailsResponse[];
  readonly default: string | null;
};

export type ModelTestResponse = {
  readonly ok: boolean;
  readonly answer: string | null;
  readonly reason: string | null;
  readonly took_ms: number;
};

export type PartResponse =
  | TextPartResponse
  | ReasoningPartResponse
  | ToolPartResponse
  | FilePartResponse
  | RememberedPartResponse
  | PlanPartResponse;

export type PlanEntryResponse = {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly priority?: string;
};

export type PlanPartResponse = {
  readonly type: "plan";
  readonly entries: readonly PlanEntryResponse[];
};

/** An error, as problem details (RFC 9457). Some have further fields, such as `field`, `run_id` or `version`. */
export type ProblemResponse = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
};

export type ProviderCheckListResponse = {
  readonly items: readonly ProviderCheckResponse[];
  readonly next: string | null;
};

export type ProviderCheckResponse = {
  readonly name: string;
  readonly title: string;
  readonly base_url: string;
  /** Names of its models, at most 200. */
  readonly models: readonly string[];
  /** Why there are none, and what to do. */
  readonly reason: string | null;
};

export type ProviderKeyRequest = {
  readonly key: string;
};

export type ProviderKeyResponse = {
  /** Whether the provider accepted the key. */
  readonly verified: boolean;
  /** Why the key could not be verified. */
  readonly reason: string | null;
};

export type ProviderResponse = {
  readonly name: string;
  readonly title: string;
  readonly has_key: boolean;
  /** The address to which the key is sent. */
  readonly base_url: string;
  readonly key_source: "settings" | "file" | "environment" | null;
  /** The environment variable that holds the key. */
  readonly key_variable: string | null;
  /** Whether it was added through the API, and can be removed. */
  readonly added: boolean;
};

export type ReasoningPartResponse = {
  readonly type: "reasoning";
  readonly text: string;
  readonly provider?: Json;
  readonly duration_ms?: number;
  readonly begins_step?: boolean;
};

export type RecoveryResponse = {
  readonly state: "pending" | "recovered" | "none";
};

export type RememberedPartResponse = {
  readonly type: "remembered";
  readonly items: readonly { readonly [key: string]: Json }[];
  readonly note?: string;
};

export type RetryRequest = {
  readonly message_id: string;
  readonly model?: string | null;
};

export type RevokeGrantRequest = {
  readonly tool: string;
  readonly scope?: string;
};

/** Events in order. `next` is the last event's number, or null if there are no events after the cursor yet. */
export type RunEventListResponse = {
  readonly items: readonly RunEventResponse[];
  readonly next: string | null;
};

export type RunEventResponse = {
  readonly seq: number;
  readonly type: string;
  readonly data: { readonly [key: string]: Json };
};

export type RunListResponse = {
  readonly items: readonly RunResponse[];
  readonly next: string | null;
};

export type RunResponse = {
  readonly id: string;
  readonly session_id: string;
  readonly message_id: string;
  readonly user_message_id: string;
  readonly status: "queued" | "running" | "waiting" | "complete" | "cancelled" | "failed" | "interrupted";
  readonly reason: string | null;
  readonly finish_reason: string | null;
  readonly lifetime: "detached" | "attached";
  readonly model: string | null;
  readonly agent: string;
  readonly usage: UsageResponse | null;
  readonly error: FailureResponse | null;
  readonly recovery: RecoveryResponse | null;
  readonly cancel_requested: boolean;
  readonly continues: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly last_seq: number;
};

export type SearchMatchResponse = {
  readonly message_id: string | null;
  readonly excerpt: string;
};

/** How many tokens of the model's context a session uses, by an estimate. */
export type SessionContextResponse = {
  readonly model: string;
  readonly used: number;
  readonly limit: number | null;
};

export type SessionListResponse = {
  readonly items: readonly SessionResponse[];
  readonly next: string | null;
};

export type SessionResponse = {
  readonly id: string;
  readonly title: string;
  readonly titled_by: "nobody" | "model" | "person";
  readonly agent: string;
  readonly model: string | null;
  readonly system: string | null;
  readonly settings: { readonly [key: string]: Json } | null;
  readonly memory: string | null;
  readonly cwd: string | null;
  readonly agent_options: { readonly [key: string]: string | boolean };
  readonly previous_session_id: string | null;
  readonly pinned: boolean;
  readonly archived: boolean;
  readonly tags: readonly string[];
  readonly project: string | null;
  readonly head: string | null;
  readonly can_redo: boolean;
  readonly active_run: string | null;
  readonly active_run_status:
    | "queued"
    | "running"
    | "waiting"
    | "complete"
    | "cancelled"
    | "failed"
    | "interrupted"
    | null;
  readonly queued_runs: readonly AcceptedRunResponse[];
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  /** In search results only. */
  readonly match?: SearchMatchResponse | null;
};

export type SessionUsageResponse = {
  readonly runs: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
};

export type SettingsResponse = {
  readonly default_model: string | null;
  readonly tools: { readonly [key: string]: "allow" | "ask" | "deny" };
  readonly grants: readonly GrantResponse[];
  readonly providers: readonly ProviderResponse[];
  readonly password_set: boolean;
  /** Whether this server has a memory. */
  readonly memory: boolean;
  /** Where the data is; null if it is in PostgreSQL. */
  readonly data_dir: string | null;
  readonly version: string;
};

export type SetupResponse = {
  /** Whether to offer connecting a model before the first chat. */
  readonly needed: boolean;
  /** Bytes of the small local model, if it can be downloaded. */
  readonly download_size: number | null;
};

/** How commands of the shell tool are confined. */
export type ShellSandboxResponse = {
  /** Whether commands run in bubblewrap. */
  readonly active: boolean;
  /** Whether commands can use the network. */
  readonly network: boolean;
  /** Why there is no sandbox. */
  readonly reason: string | null;
};

export type StartRunRequest = {
  readonly input: MessageInput;
  readonly model?: string | null;
  readonly agent?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly lifetime?: "detached" | "attached";
  readonly on_busy?: "queue" | "reject" | "interrupt";
};

export type TestModelRequest = {
  readonly model: string;
};

export type TextPartRequest = {
  readonly type: "text";
  readonly text: string;
};

export type TextPartResponse = {
  readonly type: "text";
  readonly text: string;
  readonly begins_step?: boolean;
};

export type TokenListResponse = {
  readonly items: readonly TokenResponse[];
  readonly next: string | null;
};

export type TokenResponse = {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
};

export type ToolListResponse = {
  readonly items: readonly ToolResponse[];
  readonly next: string | null;
};

export type ToolPartResponse = {
  readonly type: "tool";
  readonly call_id: string;
  readonly name: string;
  readonly args: Json;
  readonly result: Json;
  readonly is_error: boolean;
  readonly state: "pending" | "waiting" | "running" | "done" | "denied" | "unknown" | "not_run";
  readonly output?: string;
  readonly duration_ms?: number;
  readonly provider?: Json;
  readonly may_have_run?: true;
  readonly args_text?: string;
  readonly begins_step?: boolean;
};

export type ToolResponse = {
  readonly name: string;
  readonly description: string;
  readonly rule: "allow" | "ask" | "deny";
  readonly server: string | null;
  readonly sandbox?: ShellSandboxResponse | null;
};

/** Only the given fields change. */
export type UpdateFactRequest = {
  readonly text?: string;
  readonly pinned?: boolean;
  readonly confirmed?: boolean;
};

/** Only the given fields change; null clears a field that may be empty. */
export type UpdateSessionRequest = {
  readonly title?: string;
  readonly agent?: string;
  readonly model?: string | null;
  readonly system?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly memory?: string | null;
  readonly cwd?: string | null;
  readonly agent_options?: { readonly [key: string]: string | boolean } | null;
  readonly pinned?: boolean;
  readonly archived?: boolean;
  readonly tags?: readonly string[];
  readonly project?: string | null;
  /** Show the branch that this message is on. */
  readonly head?: string;
};

/** Only the given fields change. */
export type UpdateSettingsRequest = {
  readonly default_model?: string | null;
  /** All rules, by a tool's name or a pattern such as `github__*`. */
  readonly tools?: { readonly [key: string]: Json };
};

export type UsageResponse = {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
  readonly cached_tokens: number | null;
  readonly reasoning_tokens: number | null;
};

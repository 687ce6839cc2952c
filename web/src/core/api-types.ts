// Generated from the server's schemas by web/generate_types.py; do not edit.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A run with the user message that it answers. */
export type AcceptedRunResponse = {
  readonly run: RunResponse;
  readonly message: MessageResponse;
  /** Sentences about budgets that are used up and only warn. */
  readonly warnings?: readonly string[];
};

export type AddProjectFileRequest = {
  /** An uploaded file (`/api/files`). */
  readonly file_id: string;
};

export type AgentCommandResponse = {
  readonly name: string;
  readonly description: string;
  /** What to type after it; null if it takes nothing. */
  readonly hint: string | null;
};

export type AgentDirectoriesResponse = {
  /** One of these, or a directory inside one, can be chosen. */
  readonly allowed: readonly string[];
  /** Directories of recent sessions, newest first. */
  readonly recent: readonly string[];
};

export type AgentDirectoryRequest = {
  /** The directory that an agent program works in, an absolute path on the server; without it, a directory of the session's own. Also stored as `settings.cwd`. */
  readonly path: string;
};

export type AgentDirectoryResponse = {
  /** The directory, with symbolic links resolved. */
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
  /** `mode`, `model`, `thought_level`, another kind, or empty. */
  readonly category: string;
  readonly value: string | boolean;
  /** The value in a new session of the program. */
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
  /** Whether text can be added to its active run. */
  readonly can_steer?: boolean;
  readonly is_program: boolean;
  readonly available: boolean;
  readonly reason: string | null;
  /** Whether a program that is there is not available because its last test failed. */
  readonly test_failed?: boolean;
  /** The program and its arguments. */
  readonly command?: readonly string[];
  /** The address of a gateway, instead of a program. */
  readonly url?: string | null;
  readonly cwd?: string | null;
  readonly env?: readonly string[];
  /** Whether it was added here, and can be changed and removed. */
  readonly editable?: boolean;
  /** A command that would download and start a missing program. It is never run by itself; what npx has downloaded before is available and needs none. */
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

export type AttachRequest = {
  /** The `path` of a file or folder. */
  readonly path: string;
};

export type BackupRequest = {
  readonly path: string;
};

/** At most so many tokens, input and output together, or US dollars in a calendar day or month. When it is used up, `refuse` refuses new messages and `warn` only says so. */
export type BudgetRequest = {
  readonly period: "day" | "month";
  readonly unit: "tokens" | "usd";
  readonly limit: number;
  readonly action: "warn" | "refuse";
};

/** A budget and how much of it is used in its current period, until `resets_at`. */
export type BudgetResponse = {
  readonly id: string;
  readonly period: "day" | "month";
  readonly unit: "tokens" | "usd";
  readonly limit: number;
  readonly action: "warn" | "refuse";
  readonly used: number;
  readonly is_reached: boolean;
  readonly resets_at: string;
  /** Tokens that a budget in dollars cannot count. */
  readonly unpriced_tokens: number;
};

export type BudgetsResponse = {
  /** As it was set. */
  readonly time_zone: string;
  /** `UTC` if the server does not know the one that was set. */
  readonly time_zone_in_use: string;
  readonly items: readonly BudgetResponse[];
};

export type CancelSessionRequest = {
  /** The `Idempotency-Key` of a request, which may still be under way. */
  readonly key?: string | null;
};

export type CancelledRunResponse = {
  /** Null if there was nothing to cancel. */
  readonly run: RunResponse | null;
};

export type ChangeBudgetsRequest = {
  /** In which days and months begin, such as `Europe/Berlin`. */
  readonly time_zone: string;
};

export type ChangePasswordRequest = {
  readonly current?: string | null;
  readonly new: string;
};

/** Own prices by the id of the model; null removes one. Other models keep theirs. */
export type ChangePricesRequest = {
  readonly prices: { readonly [key: string]: PriceRequest | null };
};

export type ChangeSetListResponse = {
  readonly items: readonly ChangeSetResponse[];
  readonly next: string | null;
  /** Why the chat's files cannot be shown; empty if they can. */
  readonly unavailable?: string;
};

export type ChangeSetResponse = {
  /** Of the run, or of the restore. */
  readonly id: string;
  readonly kind: "run" | "restore";
  readonly created_at: string;
  /** The number of files that differ. */
  readonly files: number;
  /** The paths of the first 20 of them. */
  readonly names: readonly string[];
  /** Why changes may be missing; empty if none are. */
  readonly note: string;
  /** Of a restore: the set that it undid. */
  readonly undone: string | null;
};

export type ChangedFileDiffResponse = {
  readonly file: ChangedFileResponse;
  /** Unified; null if a content is not text or was not kept. */
  readonly diff: string | null;
  /** What the file is now: as the run left it, as it was before, or changed since. */
  readonly current: "after" | "before" | "other";
};

export type ChangedFileListResponse = {
  readonly items: readonly ChangedFileResponse[];
  readonly next: string | null;
  readonly total: number;
};

export type ChangedFileResponse = {
  /** Relative to the workspace. `%`, control characters and bytes that are not UTF-8 are written as `%` and two hexadecimal digits. */
  readonly path: string;
  readonly kind: "created" | "modified" | "deleted";
  readonly what: "absent" | "directory" | "file" | "link" | "other";
  readonly before_size: number | null;
  readonly after_size: number | null;
  readonly before_mode: number | null;
  readonly after_mode: number | null;
  readonly restorable: boolean;
  /** Why it cannot be restored. */
  readonly reason: string | null;
};

/** The values of chats that set none themselves. Null: the model's own value; for memory and tools, on. */
export type ChatDefaultsResponse = {
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly max_tokens?: number | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | null;
  readonly use_tools?: boolean | null;
  readonly system?: string | null;
  readonly memory?: "none" | null;
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

/** A known provider and its key, or the address of a server. The ids of a server's models begin with its `name`; by default that is made of the address. A server that was added before keeps its name. */
export type ConnectProviderRequest = {
  readonly name?: string | null;
  readonly provider?: string | null;
  readonly base_url?: string | null;
  readonly key?: string | null;
};

export type ContinueRunRequest = {
  readonly model?: string | null;
  /** Ids of calls that were denied because nobody answered in time, and that are allowed now. Of several such requests for a run the first counts; a repeat returns its run. */
  readonly allow?: readonly string[];
};

export type CreateEntryRequest = {
  /** The `path` of a file or folder. */
  readonly path: string;
  readonly kind: "directory" | "file";
};

export type CreateFactRequest = {
  readonly text: string;
  readonly project?: string | null;
};

export type CreatePersonaRequest = {
  readonly name: string;
  readonly emoji?: string | null;
  readonly picture?: string | null;
  readonly model?: string | null;
  readonly instructions?: string | null;
  readonly use_tools?: boolean | null;
};

export type CreateProjectRequest = {
  readonly temperature?: number | "model_default" | null;
  readonly top_p?: number | "model_default" | null;
  readonly max_tokens?: number | "model_default" | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools?: boolean | null;
  readonly name: string;
  readonly color?: "gray" | "red" | "orange" | "yellow" | "green" | "teal" | "blue" | "purple" | "pink" | null;
  readonly instructions?: string | null;
  readonly agent?: string | null;
  readonly model?: string | null;
  readonly memory?: "none" | "shared" | "project" | "project_and_shared" | null;
};

export type CreatePromptRequest = {
  /** What follows the slash in the message box: lowercase letters, digits, - and _, at most 64. */
  readonly name: string;
  /** With variables as `{{name}}` or `{{name=default}}`. */
  readonly text: string;
  readonly description?: string;
};

export type CreateSessionRequest = {
  readonly temperature?: number | "model_default" | null;
  readonly top_p?: number | "model_default" | null;
  readonly max_tokens?: number | "model_default" | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools?: boolean | null;
  readonly title?: string | null;
  readonly agent?: string | null;
  readonly model?: string | null;
  readonly system?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly memory?: string | null;
  readonly cwd?: string | null;
  readonly agent_options?: { readonly [key: string]: string | boolean } | null;
  readonly persona?: string | null;
  readonly previous_session_id?: string | null;
  readonly pinned?: boolean;
  readonly archived?: boolean;
  readonly tags?: readonly string[];
  readonly project?: string | null;
};

export type CreateShareRequest = {
  /** `text`: the messages of the shown branch; `recording`: how each answer came about. */
  readonly kind?: "text" | "recording";
  /** Share only this run. Only for recordings. */
  readonly run_id?: string | null;
  /** Include reasoning. */
  readonly reasoning?: boolean;
  /** Include tool calls with their arguments and results, and plans. */
  readonly tools?: boolean;
  /** Include images and other files. */
  readonly files?: boolean;
  /** Days until the link stops working; null: never. */
  readonly expires_in_days?: 1 | 7 | 30 | null;
};

export type CreateTokenRequest = {
  readonly name: string;
};

export type CreatedShareResponse = {
  readonly id: string;
  readonly session_id: string;
  readonly kind: "text" | "recording";
  /** Of the chat when it was shared. */
  readonly title: string;
  readonly reasoning: boolean;
  readonly tools: boolean;
  readonly files: boolean;
  /** Bytes of the page. */
  readonly size: number;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To within a minute. */
  readonly last_opened_at: string | null;
  /** What follows the address of the server in the link. It contains a secret. */
  readonly path: string;
  /** The path below which the server is published; empty if there is none. */
  readonly root_path: string;
};

export type CreatedTokenResponse = {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly token: string;
};

export type DraftResponse = {
  readonly session_id: string;
  readonly text: string;
  readonly version: number;
  readonly updated_at: string;
};

export type EditAnswerRequest = {
  readonly message_id: string;
  /** Replaces all text of the answer. */
  readonly text: string;
};

export type EditMessageRequest = {
  readonly message_id: string;
  readonly input: MessageInput;
  readonly model?: string | null;
};

export type EditQueuedRunRequest = {
  readonly input: MessageInput;
};

export type ErasedResponse = {
  /** The number of files and folders that were erased. */
  readonly erased: number;
};

export type ExportedPrompt = {
  /** What follows the slash in the message box: lowercase letters, digits, - and _, at most 64. */
  readonly name: string;
  /** With variables as `{{name}}` or `{{name=default}}`. */
  readonly text: string;
  readonly description?: string;
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
  /** Why an imported file has no content. */
  readonly missing?: "not_in_export" | "not_imported";
};

export type FileResponse = {
  readonly id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  readonly created_at: string;
};

export type FillPromptRequest = {
  /** By variable. An empty value is the default. */
  readonly values?: { readonly [key: string]: string };
};

export type FilledPromptResponse = {
  readonly text: string;
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

export type ImportedPromptsResponse = {
  readonly added: readonly string[];
  readonly replaced: readonly string[];
  readonly skipped: readonly string[];
};

export type ImportedSessionResponse = {
  readonly session_id: string;
  readonly title: string;
  /** How many were added; if it was imported before, only new ones. */
  readonly messages: number;
  readonly files: number;
  readonly is_new: boolean;
  /** What was left out of the chat, and why. */
  readonly skipped: readonly string[];
};

/** An answer to the model or to the server of a running tool. `content` holds the values of an accepted form, by field; of a question of the model, `answer`. */
export type InputAnswerRequest = {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: { readonly [key: string]: string | boolean | number | readonly string[] };
};

export type LoginLinkResponse = {
  /** What follows the address of the server in the link. It contains a secret. */
  readonly path: string;
  /** The path below which the server is published; empty if there is none. */
  readonly root_path: string;
  /** Seconds. */
  readonly expires_in: number;
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
  /** When it was last used, to within minutes. */
  readonly used_at: string;
  /** Whether this request was made with this login. */
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
  /** The page to open in the user's browser. */
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

export type MessageExcerptListResponse = {
  readonly items: readonly MessageExcerptResponse[];
  readonly next: string | null;
};

export type MessageExcerptResponse = {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly created_at: string;
};

export type MessageIdRequest = {
  readonly message_id: string;
};

export type MessageInput = string | readonly (TextPartRequest | FilePartRequest)[];

export type MessageListResponse = {
  readonly items: readonly MessageResponse[];
  readonly next: string | null;
};

/** Who answered, as it was then; the persona may have been changed or deleted since. */
export type MessagePersonaResponse = {
  readonly name: string;
  readonly emoji?: string | null;
  /** The id of an image, which may be gone. */
  readonly picture?: string | null;
};

export type MessageResponse = {
  readonly id: string;
  readonly session_id: string;
  readonly role: "user" | "assistant";
  readonly parent_id: string | null;
  readonly run_id: string | null;
  readonly status: "streaming" | "complete" | "cancelled" | "failed" | "interrupted";
  readonly parts: readonly PartResponse[];
  /** Why an answer ended early, or `edited` if a person wrote its text. */
  readonly reason: string | null;
  readonly error: FailureResponse | null;
  readonly recovery: RecoveryResponse | null;
  readonly siblings: readonly string[];
  readonly model: string | null;
  readonly persona: MessagePersonaResponse | null;
  readonly usage: UsageResponse | null;
  /** What models are shown instead of everything up to and including this message. */
  readonly summary: string | null;
  /** Milliseconds from the start of an answer's run to its end, with its tools and the time it waited for a person. Null elsewhere than in lists, while it runs, and without a run on this server. */
  readonly duration_ms: number | null;
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
  /** Settings that are passed to it, such as `temperature`. It ignores others. */
  readonly settings: readonly string[];
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

export type MoveEntryRequest = {
  /** The `path` of a file or folder. */
  readonly path: string;
  /** The new path, which must not exist. */
  readonly to: string;
};

export type PartResponse =
  | TextPartResponse
  | ReasoningPartResponse
  | ToolPartResponse
  | FilePartResponse
  | RememberedPartResponse
  | PlanPartResponse
  | SteeredPartResponse;

export type PersonaListResponse = {
  readonly items: readonly PersonaResponse[];
};

export type PersonaResponse = {
  readonly id: string;
  readonly name: string;
  readonly emoji: string | null;
  readonly picture: string | null;
  readonly model: string | null;
  readonly instructions: string | null;
  readonly use_tools: boolean | null;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
};

export type PlanEntryResponse = {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly priority?: string;
};

export type PlanPartResponse = {
  readonly type: "plan";
  readonly entries: readonly PlanEntryResponse[];
};

/** US dollars per million tokens. Without `cached_input`, cached input tokens cost as much as others. */
export type PriceRequest = {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number | null;
};

export type PriceResponse = {
  readonly input: number;
  readonly output: number;
  readonly cached_input: number | null;
};

/** Own prices by the id of the model, in US dollars per million tokens. */
export type PricesResponse = {
  readonly prices: { readonly [key: string]: PriceResponse };
};

/** An error, as problem details (RFC 9457). Some have further fields, such as `field`, `run_id` or `version`. */
export type ProblemResponse = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
};

export type ProjectListResponse = {
  readonly items: readonly ProjectResponse[];
  readonly next: string | null;
};

export type ProjectResponse = {
  readonly id: string;
  readonly name: string;
  readonly color: string | null;
  readonly instructions: string | null;
  readonly agent: string | null;
  readonly model: string | null;
  readonly memory: "none" | "shared" | "project" | "project_and_shared" | null;
  readonly temperature: number | "model_default" | null;
  readonly top_p: number | "model_default" | null;
  readonly max_tokens: number | "model_default" | null;
  readonly reasoning_effort: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools: boolean | null;
  readonly archived: boolean;
  readonly chats: number;
  readonly files: readonly FileResponse[];
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
};

/** The export format `holdfast-prompts`. */
export type PromptExport = {
  readonly format: "holdfast-prompts";
  readonly version: 1;
  readonly prompts: readonly ExportedPrompt[];
};

export type PromptExportResponse = {
  readonly format: "holdfast-prompts";
  readonly version: number;
  readonly prompts: readonly ExportedPrompt[];
};

export type PromptListResponse = {
  readonly items: readonly PromptResponse[];
  readonly next: string | null;
};

export type PromptResponse = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly text: string;
  readonly variables: readonly PromptVariableResponse[];
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
};

export type PromptVariableResponse = {
  readonly name: string;
  readonly default: string | null;
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
  /** Whether models get images even if the server does not say they can. */
  readonly images: boolean;
};

/** What the device is notified of. Choices that are left out stay as they are; of a new device, all are on. */
export type PushChoicesRequest = {
  /** Notify when an answer is ready. */
  readonly done?: boolean | null;
  /** Notify when a run fails or is interrupted. */
  readonly failed?: boolean | null;
  /** Notify when a run asks a person. */
  readonly approval?: boolean | null;
  /** Whether notifications contain the title of the chat. */
  readonly show_title?: boolean | null;
};

export type PushDeviceListResponse = {
  readonly items: readonly PushDeviceResponse[];
  readonly next: string | null;
};

export type PushDeviceResponse = {
  readonly id: string;
  /** Such as `Firefox on Linux`. */
  readonly device: string;
  /** The host of its push service. */
  readonly service: string;
  readonly done: boolean;
  readonly failed: boolean;
  readonly approval: boolean;
  readonly show_title: boolean;
  readonly created_at: string;
  /** When its push service last accepted a message. */
  readonly succeeded_at: string | null;
  readonly failed_at: string | null;
  /** Why the last message was not accepted; null if it was. */
  readonly failure: string | null;
};

export type PushKeyResponse = {
  /** For `applicationServerKey` of `PushManager.subscribe`, as base64url. */
  readonly public_key: string;
};

export type PushKeysRequest = {
  readonly p256dh: string;
  readonly auth: string;
};

export type PushTestResponse = {
  /** Whether the push service accepted the message. */
  readonly sent: boolean;
  /** Why not. */
  readonly reason: string | null;
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

export type RestoreChangesRequest = {
  /** Without it, all files. */
  readonly paths?: readonly string[] | null;
  /** Also restore files that were changed since. */
  readonly overwrite?: boolean;
};

export type RestoreEntryRequest = {
  /** Of a deleted file or folder. */
  readonly id: string;
};

export type RestoredFilesResponse = {
  /** The set that undoes this; null if nothing was restored. */
  readonly id: string | null;
  readonly restored: readonly string[];
  readonly skipped: readonly SkippedFileResponse[];
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
  /** What a waiting run needs of a person: to allow a call (`approval`), or to answer a question (`answer`). Only where runs are listed or read. */
  readonly waits_for?: "approval" | "answer" | null;
  /** The active run that this queued one's text is to be added to. */
  readonly steers: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly last_seq: number;
};

export type SaveDraftRequest = {
  /** Empty to discard the draft. */
  readonly text: string;
};

export type SaveTextRequest = {
  /** Stored as UTF-8. At most 2 MB. */
  readonly text: string;
};

export type SearchMatchResponse = {
  readonly message_id: string | null;
  readonly excerpt: string;
};

export type SentDraftRequest = {
  /** The id of a session, or `new` for the chat that is begun next. */
  readonly session_id: string;
  readonly version: number;
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
  readonly persona: string | null;
  readonly temperature: number | "model_default" | null;
  readonly top_p: number | "model_default" | null;
  readonly max_tokens: number | "model_default" | null;
  readonly reasoning_effort: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools: boolean | null;
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
  /** What the active run waits for: that a person allows a call (`approval`) or answers a question (`answer`). */
  readonly waits_for: "approval" | "answer" | null;
  /** With their user messages. `parts` is empty if they would be too long: of more than 1000 bytes in lists, of more than 8 MB in all in a session. */
  readonly queued_runs: readonly AcceptedRunResponse[];
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  /** In search results only. */
  readonly match?: SearchMatchResponse | null;
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

export type ShareListResponse = {
  readonly items: readonly ShareResponse[];
  readonly next: string | null;
};

export type ShareResponse = {
  readonly id: string;
  readonly session_id: string;
  readonly kind: "text" | "recording";
  /** Of the chat when it was shared. */
  readonly title: string;
  readonly reasoning: boolean;
  readonly tools: boolean;
  readonly files: boolean;
  /** Bytes of the page. */
  readonly size: number;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To within a minute. */
  readonly last_opened_at: string | null;
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

export type SkippedFileResponse = {
  readonly path: string;
  readonly reason: string;
};

export type StartRunRequest = {
  readonly input: MessageInput;
  readonly model?: string | null;
  readonly agent?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly lifetime?: "detached" | "attached";
  readonly on_busy?: "queue" | "reject" | "interrupt";
  readonly draft?: SentDraftRequest | null;
};

export type SteerRequest = {
  readonly text: string;
  readonly draft?: SentDraftRequest | null;
};

/** What the user added while the run was active, where the model read it. */
export type SteeredPartResponse = {
  readonly type: "steered";
  readonly id: string;
  readonly text: string;
};

/** A subscription as `PushSubscription.toJSON()` in the browser has it. */
export type SubscribeRequest = {
  /** Notify when an answer is ready. */
  readonly done?: boolean | null;
  /** Notify when a run fails or is interrupted. */
  readonly failed?: boolean | null;
  /** Notify when a run asks a person. */
  readonly approval?: boolean | null;
  /** Whether notifications contain the title of the chat. */
  readonly show_title?: boolean | null;
  readonly endpoint: string;
  readonly keys: PushKeysRequest;
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

export type TrashedItemListResponse = {
  readonly items: readonly TrashedItemResponse[];
  readonly next: string | null;
};

export type TrashedItemResponse = {
  readonly id: string;
  /** Where it was. */
  readonly path: string;
  readonly kind: "directory" | "file" | "link";
  /** Of everything in it. */
  readonly size: number;
  readonly deleted_at: string;
};

/** Only the given fields change; null clears one, and the model's own value counts. */
export type UpdateChatDefaultsRequest = {
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly max_tokens?: number | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | null;
  readonly use_tools?: boolean | null;
  readonly system?: string | null;
  readonly memory?: "none" | null;
};

/** Only the given fields change. */
export type UpdateFactRequest = {
  readonly text?: string;
  readonly pinned?: boolean;
  readonly confirmed?: boolean;
};

/** Only the given fields change; null clears a field that may be empty. */
export type UpdatePersonaRequest = {
  readonly name?: string;
  readonly emoji?: string | null;
  readonly picture?: string | null;
  readonly model?: string | null;
  readonly instructions?: string | null;
  readonly use_tools?: boolean | null;
};

/** Only the given fields change; null clears a field that may be empty. */
export type UpdateProjectRequest = {
  readonly temperature?: number | "model_default" | null;
  readonly top_p?: number | "model_default" | null;
  readonly max_tokens?: number | "model_default" | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools?: boolean | null;
  readonly name?: string;
  readonly color?: "gray" | "red" | "orange" | "yellow" | "green" | "teal" | "blue" | "purple" | "pink" | null;
  readonly instructions?: string | null;
  readonly agent?: string | null;
  readonly model?: string | null;
  readonly memory?: "none" | "shared" | "project" | "project_and_shared" | null;
  readonly archived?: boolean;
};

/** Only the given fields change. */
export type UpdatePromptRequest = {
  /** What follows the slash in the message box: lowercase letters, digits, - and _, at most 64. */
  readonly name?: string;
  /** With variables as `{{name}}` or `{{name=default}}`. */
  readonly text?: string;
  readonly description?: string;
};

/** Changes a server that was added through the API. */
export type UpdateProviderRequest = {
  readonly images: boolean;
};

/** Only the given fields change; null clears a field that may be empty. */
export type UpdateSessionRequest = {
  readonly temperature?: number | "model_default" | null;
  readonly top_p?: number | "model_default" | null;
  readonly max_tokens?: number | "model_default" | null;
  readonly reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "model_default" | null;
  readonly use_tools?: boolean | null;
  readonly title?: string;
  readonly agent?: string;
  readonly model?: string | null;
  readonly system?: string | null;
  readonly settings?: { readonly [key: string]: Json } | null;
  readonly memory?: string | null;
  readonly cwd?: string | null;
  readonly agent_options?: { readonly [key: string]: string | boolean } | null;
  readonly persona?: string | null;
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

/** `key` is a day such as `2026-11-19`, the id of a model, or a project, which is empty for chats without one. */
export type UsageGroupResponse = {
  readonly runs: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Of the input tokens, those that the provider had cached. */
  readonly cached_tokens: number;
  /** Of the output tokens, those of reasoning. */
  readonly reasoning_tokens: number;
  readonly cost: number | null;
  readonly estimated_cost: number;
  readonly unpriced_tokens: number;
  /** From the starts of the runs to their ends. */
  readonly seconds: number;
  readonly key: string;
  /** Of a model: what its tokens are estimated with. */
  readonly price: PriceResponse | null;
  readonly has_own_price: boolean;
};

export type UsageReportResponse = {
  readonly by: "day" | "model" | "project";
  readonly first_day: string;
  readonly last_day: string;
  readonly time_zone: string;
  readonly total: UsageSummaryResponse;
  readonly items: readonly UsageGroupResponse[];
  /** Groups beyond the largest 1000, which are only in the total. */
  readonly left_out: number;
};

export type UsageResponse = {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
  readonly cached_tokens: number | null;
  readonly reasoning_tokens: number | null;
};

/** What runs used, as far as their providers reported it. `cost` is in US dollars, and null if none of it is known; `estimated_cost` is the part of it that was computed from prices. `unpriced_tokens` are not in the cost. */
export type UsageSummaryResponse = {
  readonly runs: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Of the input tokens, those that the provider had cached. */
  readonly cached_tokens: number;
  /** Of the output tokens, those of reasoning. */
  readonly reasoning_tokens: number;
  readonly cost: number | null;
  readonly estimated_cost: number;
  readonly unpriced_tokens: number;
  /** From the starts of the runs to their ends. */
  readonly seconds: number;
};

export type WorkspaceEntryListResponse = {
  readonly items: readonly WorkspaceEntryResponse[];
  readonly next: string | null;
  /** Relative to the workspace. `%`, control characters and bytes that are not UTF-8 are written as `%` and two hexadecimal digits. */
  readonly path: string;
  /** The number of entries on all pages. */
  readonly total: number;
  /** False if the directory has more than a million entries. */
  readonly complete: boolean;
};

export type WorkspaceEntryResponse = {
  /** For people. Bytes that are not UTF-8 are replaced. */
  readonly name: string;
  /** Relative to the workspace. `%`, control characters and bytes that are not UTF-8 are written as `%` and two hexadecimal digits. */
  readonly path: string;
  readonly kind: "directory" | "file" | "link" | "other";
  /** What a link leads to, if that is in the workspace. */
  readonly target: "directory" | "file" | null;
  readonly size: number | null;
  readonly modified_at: string;
};

export type WorkspaceFileResponse = {
  readonly name: string;
  /** Relative to the workspace. `%`, control characters and bytes that are not UTF-8 are written as `%` and two hexadecimal digits. */
  readonly path: string;
  readonly size: number;
  readonly modified_at: string;
  /** Detected from the content. */
  readonly media_type: string;
  readonly is_text: boolean;
  readonly etag: string;
};

export type WorkspaceLocationResponse = {
  /** On the server. */
  readonly directory: string;
  /** `private`: the session's own. `chosen`: its `cwd`. `agent`: from the agent's settings. */
  readonly origin: "private" | "chosen" | "agent";
  readonly available: boolean;
  /** Why its files cannot be shown. */
  readonly reason: string | null;
};

export type WorkspacePathsResponse = {
  readonly items: readonly WorkspaceEntryResponse[];
  readonly next: string | null;
  /** False if there are more files than are looked at. */
  readonly complete: boolean;
};

export type WorkspacePreviewResponse = {
  readonly file: WorkspaceFileResponse;
  /** The beginning of the text; null for a binary file. */
  readonly text: string | null;
  readonly truncated: boolean;
  /** Whether the text is complete, is UTF-8, and may be written by the server's account. */
  readonly editable: boolean;
};

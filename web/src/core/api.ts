// The typed HTTP client. A failed call throws `ApiError`; status 0 means that the server did not answer.
// What is sent again by itself: messages, by `outbox`, and event streams, by `event-stream`.

import type * as api from "./api-types.ts";
import type { Env } from "./env.ts";
import type { Decision, InputAnswer, Run, Session } from "./types.ts";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The field or parameter that an `invalid` request has wrong. */
    readonly field: string | null = null,
    /** Everything that the server said. */
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }

  /** The server was unreachable or not ready, or the login has expired: the same call may succeed later. */
  get isTransient(): boolean {
    return [0, 401, 502, 503, 504].includes(this.status);
  }
}

/** Returns the text to show for a caught error; empty if the user canceled the action. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why it failed, for those who show it where it was tried; null if it did not. */
export const problemOf = (work: Promise<unknown>): Promise<string | null> => work.then(() => null, errorMessage);

export const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

const TIMEOUT_MS = 30_000;
/** The server answers a cancel within two seconds. */
const CANCEL_TIMEOUT_MS = 8000;
/** A program has a minute to start, and another one to open a session. */
const SUMMARY_TIMEOUT_MS = 310_000;
const AGENT_TEST_TIMEOUT_MS = 150_000;
/** The `Date` header has whole seconds: half a second is lost on average. */
const DATE_HEADER_LOSS_MS = 500;

export const UNREACHABLE = "The server is unreachable. Check your connection and try again.";

export class Api {
  private readonly writeListeners = new Set<(path: string) => void>();
  /** Asks for the password before a sensitive change, with the reason why the last one was wrong; null: canceled. */
  askPassword: ((problem: string | null) => Promise<string | null>) | null = null;

  /** Shows what the server said when it accepted a message: that a budget is used up. */
  showWarnings: ((warnings: readonly string[]) => void) | null = null;

  /** How far the server's clock is ahead of this device's, in milliseconds. */
  clockOffset = 0;

  constructor(private readonly env: Env) {}

  serverNow = (): number => this.env.now() + this.clockOffset;

  async call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    timeoutMs = TIMEOUT_MS,
  ): Promise<T> {
    return this.withPassword(() => this.request<T>(method, path, body, headers, timeoutMs));
  }

  /** Makes a request, and once more after asking for the password if the server wants it. */
  private async withPassword<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      const asks = error instanceof ApiError && error.code === "reauthentication-required";
      if (!asks) throw error;
      if (!(await this.confirmPassword())) throw new ApiError(error.status, "canceled", ""); // nothing to report
      return await send();
    }
  }

  private async confirmPassword(): Promise<boolean> {
    let problem: string | null = null;
    while (this.askPassword) {
      const password = await this.askPassword(problem);
      if (!password) return false;
      try {
        await this.request("POST", "/api/login", { password }, {});
        return true;
      } catch (error) {
        problem = errorMessage(error);
      }
    }
    return false;
  }

  /** Calls `listener` with the path of each request of this page that changed something on the server. */
  onWrite(listener: (path: string) => void): () => void {
    this.writeListeners.add(listener);
    return () => {
      this.writeListeners.delete(listener);
    };
  }

  private async request<T>(
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
    timeoutMs = TIMEOUT_MS,
    signal?: AbortSignal,
  ): Promise<T> {
    const timeout = new AbortController();
    signal?.addEventListener("abort", () => timeout.abort(), { once: true });
    const cancelTimeout = this.env.setTimer(timeoutMs, () => timeout.abort());
    const init: RequestInit = { method, headers, signal: timeout.signal };
    if (body instanceof Blob || body instanceof FormData) init.body = body;
    else if (body !== undefined) {
      init.headers = { ...headers, "Content-Type": "application/json" };
      init.body = JSON.stringify(body);
    }
    try {
      const response = await this.env.fetch(path, init);
      const date = Date.parse(response.headers.get("Date") ?? "");
      if (!Number.isNaN(date)) this.clockOffset = date + DATE_HEADER_LOSS_MS - this.env.now();
      // A wrong password is a 401 without a challenge.
      if (response.status === 401 && response.headers.has("WWW-Authenticate")) this.env.openLogin();
      if (!response.ok) throw await toApiError(response);
      const text = await response.text();
      if (method !== "GET") for (const listener of [...this.writeListeners]) listener(path);
      return (text ? JSON.parse(text) : null) as T;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(0, "unreachable", UNREACHABLE);
    } finally {
      cancelTimeout();
    }
  }

  get = <T>(path: string, signal?: AbortSignal) =>
    this.withPassword(() => this.request<T>("GET", path, undefined, {}, TIMEOUT_MS, signal));
  post = <T>(path: string, body?: unknown, key?: string) =>
    this.call<T>("POST", path, body, key ? { "Idempotency-Key": key } : {});

  private async startRun(path: string, body: unknown, key: string): Promise<api.AcceptedRunResponse> {
    const accepted = await this.post<api.AcceptedRunResponse>(path, body, key);
    if (accepted.warnings?.length) this.showWarnings?.(accepted.warnings);
    return accepted;
  }

  sessions(options: {
    query?: string;
    project?: string;
    archived?: boolean;
    /** "false": without the chats of archived projects. */
    archived_projects?: string;
    cursor?: string | null;
    limit?: number;
  }) {
    return this.get<api.SessionListResponse>(`/api/sessions${queryString(options)}`);
  }
  comparedSessions = () => this.get<api.SessionListResponse>("/api/sessions?source=compare&limit=100");
  session = (sid: string) => this.get<Session>(`/api/sessions/${sid}`);
  createSession = (fields: api.CreateSessionRequest, key: string) => this.post<Session>("/api/sessions", fields, key);
  patchSession = (sid: string, fields: api.UpdateSessionRequest) =>
    this.call<Session>("PATCH", `/api/sessions/${sid}`, fields);
  deleteSession = (sid: string, forget: boolean) =>
    this.call<null>("DELETE", `/api/sessions/${sid}${queryString({ forget })}`);
  /** Deletes a session while the page is being left: nobody waits for the answer. */
  deleteOnLeave(sid: string, forget: boolean): void {
    const path = `/api/sessions/${sid}${queryString({ forget })}`;
    this.env.fetch(path, { method: "DELETE", keepalive: true }).catch(() => undefined);
  }
  messages(sid: string, cursor: string | null = null, limit = 50) {
    return this.get<api.MessageListResponse>(`/api/sessions/${sid}/messages${queryString({ cursor, limit })}`);
  }
  outline(sid: string, query: string, cursor: string | null) {
    const path = `/api/sessions/${sid}/outline${queryString({ query, cursor, limit: 200 })}`;
    return this.get<api.MessageExcerptListResponse>(path);
  }
  undo = (sid: string) => this.post<Session>(`/api/sessions/${sid}/undo`);
  redo = (sid: string) => this.post<Session>(`/api/sessions/${sid}/redo`);
  generateTitle = (sid: string) => this.post<Session>(`/api/sessions/${sid}/title`);
  compact = (sid: string) =>
    this.call<Session>("POST", `/api/sessions/${sid}/compact`, undefined, {}, SUMMARY_TIMEOUT_MS);
  fork = (sid: string, message_id: string, key: string) =>
    this.post<Session>(`/api/sessions/${sid}/fork`, { message_id }, key);
  send = (sid: string, body: api.StartRunRequest, key: string) => this.startRun(`/api/sessions/${sid}/runs`, body, key);
  retry = (sid: string, body: api.RetryRequest, key: string) => this.startRun(`/api/sessions/${sid}/retry`, body, key);
  edit = (sid: string, body: api.EditMessageRequest, key: string) =>
    this.startRun(`/api/sessions/${sid}/edit`, body, key);
  continueRun = (rid: string, key: string, allow: readonly string[] = []) =>
    this.startRun(`/api/runs/${rid}/continue`, allow.length ? { allow } : {}, key);
  steer = (rid: string, body: api.SteerRequest, key: string) => this.startRun(`/api/runs/${rid}/steer`, body, key);
  cancel = (rid: string) => this.call<Run>("POST", `/api/runs/${rid}/cancel`, undefined, {}, CANCEL_TIMEOUT_MS);
  events = (rid: string, after: number) =>
    this.get<api.RunEventListResponse>(`/api/runs/${rid}/events/page${queryString({ after })}`);
  recover = (rid: string) => this.post<Run>(`/api/runs/${rid}/recover`);
  decide = (rid: string, aid: string, decision: Decision, option?: string) =>
    this.post<Run>(`/api/runs/${rid}/approvals/${aid}`, { decision, ...(option === undefined ? {} : { option }) });
  answerInput = (rid: string, id: string, answer: InputAnswer) =>
    this.post<Run>(`/api/runs/${rid}/inputs/${id}`, answer);
  editQueued = (rid: string, input: api.MessageInput) =>
    this.call<api.AcceptedRunResponse>("PATCH", `/api/runs/${rid}`, { input });
  runs(options: { status?: string; session?: string; limit?: number; cursor?: string | null }) {
    return this.get<api.RunListResponse>(`/api/runs${queryString(options)}`);
  }
  run = (rid: string) => this.get<Run>(`/api/runs/${rid}`);
  models = (refresh = false) => this.get<api.ModelListResponse>(`/api/models${queryString({ refresh })}`);
  agents = () => this.get<api.AgentListResponse>("/api/agents");
  agentOptions = (agent: string, sid: string | null) =>
    this.get<api.AgentOptionsResponse>(
      `/api/agents/${encodeURIComponent(agent)}/options${queryString({ session_id: sid })}`,
    );
  agentDirectories = () => this.get<api.AgentDirectoriesResponse>("/api/agents/directories");
  checkDirectory = (path: string) => this.post<api.AgentDirectoryResponse>("/api/agents/directories/check", { path });
  testAgent = (agent: string) =>
    this.call<api.AgentTestResponse>(
      "POST",
      `/api/agents/${encodeURIComponent(agent)}/test`,
      undefined,
      {},
      AGENT_TEST_TIMEOUT_MS,
    );
  /** Sends a file as it is, however long that takes, and returns the response to be read as a stream. */
  async sendFile(path: string, file: File): Promise<ReadableStream<Uint8Array>> {
    const headers = { "Content-Type": "application/octet-stream" };
    const response = await this.env.fetch(path, { method: "POST", headers, body: file.slice() });
    if (!response.ok || !response.body) throw await toApiError(response);
    return response.body;
  }
  /** Starts a long task and returns the stream of its progress. */
  startTask(path: string): Promise<ReadableStream<Uint8Array>> {
    return this.withPassword(async () => {
      const response = await this.env.fetch(path, { method: "POST" });
      if (!response.ok || !response.body) throw await toApiError(response);
      return response.body;
    });
  }
  usage = (by: api.UsageReportResponse["by"], from: string, to: string, timeZone: string) =>
    this.get<api.UsageReportResponse>(usagePath({ by, from, to, time_zone: timeZone }));
  budgets = () => this.get<api.BudgetsResponse>("/api/budgets");
  addBudget = (budget: api.BudgetRequest) => this.call<api.BudgetsResponse>("POST", "/api/budgets", budget);
  deleteBudget = (id: string) => this.call<null>("DELETE", `/api/budgets/${encodeURIComponent(id)}`);
  setBudgetTimeZone = (time_zone: string) => this.call<api.BudgetsResponse>("PATCH", "/api/budgets", { time_zone });
  changePrice = (model: string, price: api.PriceRequest | null) =>
    this.call<api.PricesResponse>("PATCH", "/api/prices", { prices: { [model]: price } });
  projects(options: { archived?: boolean; cursor?: string | null }) {
    return this.get<api.ProjectListResponse>(`/api/projects${queryString({ ...options, limit: 200 })}`);
  }
  chatDefaults(): Promise<api.ChatDefaultsResponse> {
    return this.get("/api/chat-defaults");
  }
  changeChatDefaults(fields: api.UpdateChatDefaultsRequest): Promise<api.ChatDefaultsResponse> {
    return this.call("PATCH", "/api/chat-defaults", fields);
  }
  upload(file: File): Promise<api.FileResponse> {
    const form = new FormData();
    form.append("file", file);
    return this.call<api.FileResponse>("POST", "/api/files", form);
  }
}

export const usagePath = (options: Parameters<typeof queryString>[0]) => `/api/usage${queryString(options)}`;

/** Leaves out empty and false values. */
function queryString(options: { [name: string]: string | number | boolean | null | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) if (value) query.set(name, String(value));
  return query.size ? `?${query}` : "";
}

const PROXY_ERRORS: Readonly<Record<number, string>> = {
  413: "A proxy in front of the server refused this because it is too large. Raise the proxy’s limit (client_max_body_size in nginx).",
  502: "A proxy in front of the server cannot reach it. Check that the server is running.",
  504: "A proxy in front of the server did not wait for the answer. Raise the proxy’s time limit (proxy_read_timeout in nginx).",
};

/** Reads problem details (RFC 9457). */
export async function toApiError(response: Response): Promise<ApiError> {
  // The server explains its errors itself; these are of a proxy in front of it.
  const fallback = PROXY_ERRORS[response.status] ?? `Something went wrong (HTTP ${response.status}).`;
  try {
    const problem = (await response.json()) as Partial<api.ProblemResponse> & { decision?: string; field?: string };
    const message =
      problem.type === "already-decided"
        ? `Already ${problem.decision === "deny" ? "denied" : "allowed"} in another tab`
        : (problem.detail ?? problem.title ?? fallback);
    return new ApiError(response.status, problem.type ?? "error", message, problem.field, problem);
  } catch {
    return new ApiError(response.status, "error", fallback);
  }
}

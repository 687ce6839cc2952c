// The calls, typed. An answer that is no success is a `Problem`; no answer at all is a `Problem` with status 0.

import type { Env } from "./env.ts";
import type {
  Accepted,
  Agent,
  Decision,
  InputPart,
  Json,
  JsonObject,
  Message,
  Model,
  Page,
  Run,
  Session,
  StoredFile,
} from "./wire.ts";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }

  /** The server could not be reached or is not ready: the same call may succeed later. */
  get passes(): boolean {
    return this.status === 0 || this.status === 503 || this.status === 502 || this.status === 504;
  }
}

const LIMIT = 30_000;

export class Api {
  constructor(private readonly env: Env) {}

  async call<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const limit = new AbortController();
    const relax = this.env.after(LIMIT, () => limit.abort());
    const init: RequestInit = { method, headers, signal: limit.signal };
    if (body instanceof Blob) init.body = body;
    else if (body instanceof FormData) init.body = body;
    else if (body !== undefined) {
      init.headers = { ...headers, "Content-Type": "application/json" };
      init.body = JSON.stringify(body);
    }
    try {
      const answer = await this.env.fetch(path, init);
      const text = await answer.text();
      if (answer.ok) return (text ? JSON.parse(text) : null) as T;
      throw problemOf(answer.status, text);
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem(0, "unreachable", "The server cannot be reached.");
    } finally {
      relax();
    }
  }

  get = <T>(path: string) => this.call<T>("GET", path);
  post = <T>(path: string, body?: unknown, key?: string) =>
    this.call<T>("POST", path, body, key ? { "Idempotency-Key": key } : {});

  sessions(options: { query?: string; archived?: boolean; cursor?: string | null; limit?: number }) {
    return this.get<Page<Session>>(`/api/sessions${params(options)}`);
  }
  session = (sid: string) => this.get<Session>(`/api/sessions/${sid}`);
  createSession = (fields: JsonObject) => this.post<Session>("/api/sessions", fields);
  patchSession = (sid: string, fields: JsonObject) => this.call<Session>("PATCH", `/api/sessions/${sid}`, fields);
  deleteSession = (sid: string, forget: boolean) =>
    this.call<null>("DELETE", `/api/sessions/${sid}${params({ forget })}`);
  messages(sid: string, cursor: string | null = null, limit = 50) {
    return this.get<Page<Message>>(`/api/sessions/${sid}/messages${params({ cursor, limit })}`);
  }
  act = (sid: string, verb: "undo" | "redo" | "clear" | "compact") =>
    this.post<Session>(`/api/sessions/${sid}/${verb}`);
  fork = (sid: string, message_id: string) => this.post<Session>(`/api/sessions/${sid}/fork`, { message_id });
  send = (sid: string, body: JsonObject, key: string) => this.post<Accepted>(`/api/sessions/${sid}/runs`, body, key);
  retry = (sid: string, message_id: string, key: string, model?: string) =>
    this.post<Accepted>(`/api/sessions/${sid}/retry`, { message_id, ...(model ? { model } : {}) }, key);
  edit = (sid: string, message_id: string, input: string | InputPart[], key: string) =>
    this.post<Accepted>(`/api/sessions/${sid}/edit`, { message_id, input }, key);
  continueRun = (rid: string, key: string) => this.post<Accepted>(`/api/runs/${rid}/continue`, {}, key);
  cancel = (rid: string) => this.post<Run>(`/api/runs/${rid}/cancel`);
  recover = (rid: string) => this.post<Run>(`/api/runs/${rid}/recover`);
  decide = (rid: string, aid: string, decision: Decision) =>
    this.post<Run>(`/api/runs/${rid}/approvals/${aid}`, { decision });
  editQueued = (rid: string, input: string | InputPart[]) =>
    this.call<Accepted>("PATCH", `/api/runs/${rid}`, { input });
  runs(options: { status?: string; session?: string; limit?: number; cursor?: string | null }) {
    return this.get<Page<Run>>(`/api/runs${params(options)}`);
  }
  run = (rid: string) => this.get<Run>(`/api/runs/${rid}`);
  models = () => this.get<{ items: Model[]; default: string | null }>("/api/models");
  agents = () => this.get<{ items: Agent[] }>("/api/agents");
  importLines(file: Blob) {
    return this.call<Page<{ session_id: string }>>("POST", "/api/import", file.slice(), {
      "Content-Type": "application/x-ndjson",
    });
  }
  upload(file: File): Promise<StoredFile> {
    const form = new FormData();
    form.append("file", file);
    return this.call<StoredFile>("POST", "/api/files", form);
  }
}

function params(options: { [name: string]: Json | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

function problemOf(status: number, text: string): Problem {
  try {
    const { type, detail, title } = JSON.parse(text) as { type?: string; detail?: string; title?: string };
    return new Problem(status, type ?? "error", detail ?? title ?? "That did not work.");
  } catch {
    return new Problem(status, "error", `The server answered ${status}.`);
  }
}

// Share links: what can be chosen, and the address of a new one, which the server tells only once.

import type { Api } from "./api.ts";
import type { CreatedShareResponse, CreateShareRequest, ShareListResponse, ShareResponse } from "./api-types.ts";

export type ShareExpiry = NonNullable<CreateShareRequest["expires_in_days"]> | null;

export const EXPIRIES: readonly (readonly [ShareExpiry, string])[] = [
  [1, "1 day"],
  [7, "7 days"],
  [30, "30 days"],
  [null, "Never"],
];

export const SHARE_KINDS = [
  ["text", "Text"],
  ["recording", "Recording"],
] as const satisfies readonly (readonly [ShareResponse["kind"], string])[];

/** The whole address, as others can open it. */
export const shareAddress = (origin: string, { path, root_path }: CreatedShareResponse): string =>
  origin + root_path + path;

/** Whether the browser is on the machine that runs the server: such an address means another machine elsewhere. */
export const isLocalAddress = (hostname: string): boolean =>
  hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || hostname.startsWith("127.");

/** What a share contains besides the messages. */
export function describeIncluded({ reasoning, tools, files }: ShareResponse): string {
  const names = [reasoning && "reasoning", tools && "tool calls", files && "files"].filter((name) => name !== false);
  return names.length ? `With ${names.join(", ")}` : "";
}

/** A long chat with many files is rendered when it is shared. */
const SHARE_TIMEOUT_MS = 120_000;

export const createShare = (api: Api, sid: string, body: CreateShareRequest) =>
  api.call<CreatedShareResponse>("POST", `/api/sessions/${sid}/shares`, body, {}, SHARE_TIMEOUT_MS);

export const listShares = (api: Api, cursor: string | null) =>
  api.get<ShareListResponse>(`/api/shares${cursor ? `?${new URLSearchParams({ cursor })}` : ""}`);

export const revokeShare = (api: Api, id: string) => api.call<null>("DELETE", `/api/shares/${id}`);

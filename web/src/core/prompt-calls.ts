// The calls for the prompt library. They are not part of the first load.

import type { Api } from "./api.ts";
import type {
  CreatePromptRequest,
  FilledPromptResponse,
  ImportedPromptsResponse,
  PromptListResponse,
  PromptResponse,
  UpdatePromptRequest,
} from "./api-types.ts";

export type { PromptResponse } from "./api-types.ts";

const PATH = "/api/prompts";
const PAGE_SIZE = 200;

/** All of them: the server stores a thousand at most. */
export async function listPrompts(api: Api): Promise<readonly PromptResponse[]> {
  const found: PromptResponse[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
    const page: PromptListResponse = await api.get(`${PATH}?limit=${PAGE_SIZE}${query}`);
    found.push(...page.items);
    cursor = page.next;
  }
  return found;
}

export const createPrompt = (api: Api, fields: CreatePromptRequest) => api.post<PromptResponse>(PATH, fields);
export const changePrompt = (api: Api, { id, version }: PromptResponse, fields: UpdatePromptRequest) =>
  api.call<PromptResponse>("PATCH", `${PATH}/${id}`, fields, { "If-Match": `"${version}"` });
export const deletePrompt = (api: Api, id: string) => api.call<null>("DELETE", `${PATH}/${id}`);
export const fillPrompt = async (api: Api, id: string, values: { [variable: string]: string }) =>
  (await api.post<FilledPromptResponse>(`${PATH}/${id}/fill`, { values })).text;

/** Imports an exported library. A prompt whose name is in use here stays as it is, unless it is to be replaced. */
export async function importPrompts(api: Api, file: File, replace: boolean): Promise<ImportedPromptsResponse> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch {
    throw new Error("This is not a prompt library exported by Holdfast.");
  }
  return api.post(`${PATH}/import?on_conflict=${replace ? "replace" : "skip"}`, content);
}

// The calls for one project. They are not part of the first load.

import type { Api } from "./api.ts";
import type { CreateProjectRequest, UpdateProjectRequest } from "./api-types.ts";
import type { Project } from "./projects.ts";

/** Thousands of chats are moved or deleted a hundred at a time. */
const TIMEOUT_MS = 120_000;

const pathOf = (id: string, ...rest: readonly string[]) =>
  ["/api/projects", ...[id, ...rest].map(encodeURIComponent)].join("/");

export const getProject = (api: Api, id: string) => api.get<Project>(pathOf(id));
export const createProject = (api: Api, fields: CreateProjectRequest) => api.post<Project>("/api/projects", fields);
export const patchProject = (api: Api, id: string, fields: UpdateProjectRequest) =>
  api.call<Project>("PATCH", pathOf(id), fields, {}, TIMEOUT_MS);
export const deleteProject = (api: Api, id: string, deleteChats: boolean) =>
  api.call<null>("DELETE", `${pathOf(id)}?delete_chats=${deleteChats}`, undefined, {}, TIMEOUT_MS);
export const addProjectFile = (api: Api, id: string, file_id: string) =>
  api.post<Project>(pathOf(id, "files"), { file_id });
export const removeProjectFile = (api: Api, id: string, fid: string) =>
  api.call<Project>("DELETE", pathOf(id, "files", fid));

// The calls for personas. They are not part of the first load.

import type { Api } from "./api.ts";
import type { CreatePersonaRequest, PersonaListResponse, PersonaResponse, UpdatePersonaRequest } from "./api-types.ts";

export type { PersonaResponse } from "./api-types.ts";

const PATH = "/api/personas";

export const listPersonas = async (api: Api): Promise<readonly PersonaResponse[]> =>
  (await api.get<PersonaListResponse>(PATH)).items;
export const createPersona = (api: Api, fields: CreatePersonaRequest) => api.post<PersonaResponse>(PATH, fields);
export const changePersona = (api: Api, { id, version }: PersonaResponse, fields: UpdatePersonaRequest) =>
  api.call<PersonaResponse>("PATCH", `${PATH}/${id}`, fields, { "If-Match": `"${version}"` });
export const deletePersona = (api: Api, id: string) => api.call<null>("DELETE", `${PATH}/${id}`);

// Imports a file with chats of Holdfast or of another application. The server answers with a stream of its progress.

import { type Api, ApiError } from "./api.ts";
import { SseParser } from "./sse-parser.ts";

export interface ImportProgress {
  readonly what: "reading" | "importing";
  readonly done: number;
  readonly total: number;
}

export interface ImportSummary {
  readonly source: string;
  readonly imported: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly messages: number;
  readonly skipped: readonly { item: string; reason: string }[];
  readonly skipped_count: number;
}

/** An empty `source` lets the server detect it. */
export async function importFile(
  api: Api,
  file: File,
  source: string,
  onProgress: (progress: ImportProgress) => void,
): Promise<ImportSummary> {
  const query = new URLSearchParams({ name: file.name, ...(source && { source }) });
  const reader = (await api.sendFile(`/api/import/file?${query}`, file)).getReader();
  const parser = new SseParser();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    for (const frame of parser.push(chunk.value)) {
      if (frame.event === "progress") onProgress(JSON.parse(frame.data) as ImportProgress);
      if (frame.event === "done") return JSON.parse(frame.data) as ImportSummary;
      if (frame.event === "failed") {
        const problem = JSON.parse(frame.data) as { type: string; detail: string };
        throw new ApiError(422, problem.type, problem.detail);
      }
    }
  }
  throw new ApiError(
    0,
    "unreachable",
    "The connection was lost. Import the file again: only what is missing is added.",
  );
}

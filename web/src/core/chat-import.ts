// Imports a file with chats of Holdfast or of another application. The server answers with a stream of its progress.

import type { Api } from "./api.ts";
import { readProgress } from "./progress-stream.ts";

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
  /** The newest of those imported: they are in the list under their own dates. */
  readonly sessions: readonly { id: string; title: string }[];
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
  const lost = "The connection was lost. Import the file again: only what is missing is added.";
  return readProgress(await api.sendFile(`/api/import/file?${query}`, file), onProgress, lost);
}

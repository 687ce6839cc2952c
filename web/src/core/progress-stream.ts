// Reads the stream of a long task: its progress, then its result or why it failed.

import { ApiError } from "./api.ts";
import { SseParser } from "./sse-parser.ts";

/** `lost` is the error message if the stream ends without a result. */
export async function readProgress<Progress, Result>(
  stream: ReadableStream<Uint8Array>,
  onProgress: (progress: Progress) => void,
  lost: string,
): Promise<Result> {
  const reader = stream.getReader();
  const parser = new SseParser();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    for (const frame of parser.push(chunk.value)) {
      if (frame.event === "progress") onProgress(JSON.parse(frame.data) as Progress);
      if (frame.event === "done") return JSON.parse(frame.data) as Result;
      if (frame.event === "failed") {
        const problem = JSON.parse(frame.data) as { type: string; detail: string };
        throw new ApiError(422, problem.type, problem.detail);
      }
    }
  }
  throw new ApiError(0, "unreachable", lost);
}

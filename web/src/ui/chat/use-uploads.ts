// The files of a message that is being written: uploaded at once, in the order in which they were added.

import { useCallback, useRef, useState } from "react";
import { ApiError, errorMessage } from "../../core/api.ts";
import type { FilePart, Model } from "../../core/types.ts";
import { useApp } from "../context.ts";

interface Upload {
  readonly id: string;
  readonly file: File;
  readonly problem: string | null;
  /** Whether the same file may be accepted later. */
  readonly canRetry: boolean;
}

export function useUploads(initial: () => readonly FilePart[]) {
  const { api, env } = useApp();
  const [files, setFiles] = useState(initial);
  const [pending, setPending] = useState<readonly Upload[]>([]);
  /** In which order the files were added, by their ids: they are stored in another one. */
  const order = useRef(new Map<string, number>());
  const upload = useCallback(
    async (file: File, id = env.newId()) => {
      const started = { id, file, problem: null, canRetry: false };
      setPending((now) =>
        now.some((item) => item.id === id) ? now.map((item) => (item.id === id ? started : item)) : [...now, started],
      );
      try {
        if (!file.size) throw new Error("This file is empty.");
        if (!order.current.has(id)) order.current.set(id, order.current.size);
        const { id: file_id, name, media_type, size } = await api.upload(file);
        order.current.set(file_id, order.current.get(id) ?? 0);
        const place = (item: FilePart) => order.current.get(item.file_id) ?? -1;
        setFiles((now) =>
          [...now, { type: "file", file_id, name, media_type, size } as const].sort((a, b) => place(a) - place(b)),
        );
        setPending((now) => now.filter((item) => item.id !== id));
        return file_id;
      } catch (error) {
        const problem = errorMessage(error);
        const canRetry = error instanceof ApiError && (error.isTransient || error.status >= 429);
        setPending((now) => now.map((item) => (item.id === id ? { ...item, problem, canRetry } : item)));
        return null;
      }
    },
    [api, env],
  );
  return {
    files,
    pending,
    busy: pending.some((item) => item.problem === null),
    add: (list: Iterable<File>) => {
      for (const file of list) void upload(file);
    },
    /** Returns the id of the file, or null if it could not be uploaded; then it is not listed. */
    addOrFail: async (file: File): Promise<string | null> => {
      const id = env.newId();
      const fileId = await upload(file, id);
      if (fileId === null) setPending((now) => now.filter((item) => item.id !== id));
      return fileId;
    },
    /** One that is on the server already. */
    attach: (file: FilePart) => {
      order.current.set(file.file_id, order.current.size);
      setFiles((now) => [...now, file]);
    },
    remove: (fileId: string) => setFiles((now) => now.filter((file) => file.file_id !== fileId)),
    retry: ({ file, id }: Upload) => void upload(file, id),
    dismiss: (id: string) => setPending((now) => now.filter((item) => item.id !== id)),
    clear: () => setFiles([]),
    replace: setFiles,
    restore: (list: readonly FilePart[]) => setFiles((now) => (now.length ? now : list)),
  };
}

/** Why this model cannot read the file, if it cannot. */
export function unreadable(file: FilePart, model: Model | undefined): string | null {
  if (!model) return null;
  if (file.media_type.startsWith("image/")) return model.abilities.includes("images") ? null : "can’t see images";
  const isPdf = file.media_type === "application/pdf";
  return isPdf && !model.abilities.includes("documents") ? "can’t read PDFs" : null;
}

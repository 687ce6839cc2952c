// Files on their way into a message: uploaded at once, shown with a preview, taken out again with a button.

import { useCallback, useState } from "react";
import type { Problem } from "../core/api.ts";
import type { FilePart } from "../core/wire.ts";
import { useApp } from "./context.ts";
import { size } from "./format.ts";
import { Icon } from "./icons.tsx";
import { IconButton } from "./widgets.tsx";

interface Uploading {
  readonly id: number;
  readonly name: string;
  readonly problem: string | null;
}

export interface Uploads {
  readonly files: readonly FilePart[];
  readonly pending: readonly Uploading[];
  readonly busy: boolean;
  add(files: Iterable<File>): void;
  remove(fileId: string): void;
  dismiss(id: number): void;
  clear(): void;
  restore(files: readonly FilePart[]): void;
}

export function useUploads(initial: () => readonly FilePart[]): Uploads {
  const { api } = useApp();
  const [files, setFiles] = useState(initial);
  const [pending, setPending] = useState<readonly Uploading[]>([]);
  const upload = useCallback(
    async (file: File) => {
      const id = Math.random();
      setPending((now) => [...now, { id, name: file.name, problem: null }]);
      try {
        const { id: file_id, name, media_type, size } = await api.upload(file);
        setFiles((now) => [...now, { type: "file", file_id, name, media_type, size }]);
        setPending((now) => now.filter((item) => item.id !== id));
      } catch (error) {
        const problem = (error as Problem).message;
        setPending((now) => now.map((item) => (item.id === id ? { ...item, problem } : item)));
      }
    },
    [api],
  );
  return {
    files,
    pending,
    busy: pending.some((item) => item.problem === null),
    add: (list) => {
      for (const file of list) void upload(file);
    },
    remove: (fileId) => setFiles((now) => now.filter((file) => file.file_id !== fileId)),
    dismiss: (id) => setPending((now) => now.filter((item) => item.id !== id)),
    clear: () => setFiles([]),
    restore: (list) => setFiles((now) => (now.length ? now : list)),
  };
}

export function Attachments({ uploads }: { uploads: Uploads }) {
  if (!uploads.files.length && !uploads.pending.length) return null;
  return (
    <ul className="attachments" aria-label="Attachments">
      {uploads.files.map((file) => (
        <li key={file.file_id} className="chip">
          {file.media_type.startsWith("image/") ? (
            <img src={`/api/files/${file.file_id}/content`} alt="" />
          ) : (
            <Icon name="file" />
          )}
          <span>{file.name}</span>
          <span className="quiet">{size(file.size)}</span>
          <IconButton name={`Remove ${file.name}`} icon="close" onClick={() => uploads.remove(file.file_id)} />
        </li>
      ))}
      {uploads.pending.map((item) => (
        <li key={item.id} className="chip">
          <span>{item.name}</span>
          <span className={item.problem ? "bad" : "quiet"}>{item.problem ?? "uploading…"}</span>
          {item.problem && (
            <IconButton name={`Dismiss ${item.name}`} icon="close" onClick={() => uploads.dismiss(item.id)} />
          )}
        </li>
      ))}
    </ul>
  );
}

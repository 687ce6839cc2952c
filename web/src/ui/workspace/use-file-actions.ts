// What a person does with files and folders. Nothing is overwritten; a deletion can be undone.

import { errorMessage, problemOf } from "../../core/api.ts";
import type { TrashedItemResponse, WorkspaceEntryResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { joinPath, nameOf, parentOf, pathOfName, workspaceAddress } from "../../core/workspace.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withRoot } from "../root-path.ts";
import type { MenuItem } from "../widgets/Menu.tsx";
import { isDirectory } from "./FileTree.tsx";
import { draftKey, draftsBelow, keepDraft, moveDrafts } from "./file-drafts.ts";

export interface FileActions {
  readonly create: (kind: "file" | "directory", folder: string) => Promise<void>;
  readonly rename: (entry: WorkspaceEntryResponse) => Promise<void>;
  readonly move: (entry: WorkspaceEntryResponse) => Promise<void>;
  readonly remove: (entry: WorkspaceEntryResponse) => Promise<void>;
  readonly upload: (files: readonly File[], folder: string) => Promise<void>;
}

/** `onChanged`: files are to be read again; what is at `path` now gets the focus, null: what is next to it. */
export function useFileActions(
  sid: string,
  onChanged: (path: string | null) => void,
  onCreated: (path: string) => void,
): FileActions {
  const { api, toasts } = useApp();
  const post = (call: string, body: unknown) => api.post<WorkspaceEntryResponse>(workspaceAddress(sid, call), body);
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      toasts.show(errorMessage(error));
    }
  };
  const relocate = async (entry: WorkspaceEntryResponse, to: string) => {
    if (to === entry.path) return;
    const moved = await post("move", { path: entry.path, to });
    moveDrafts(draftKey(sid, entry.path), draftKey(sid, moved.path));
    onChanged(moved.path);
  };
  const restore = (item: TrashedItemResponse) =>
    attempt(async () => {
      const { path } = await post("restore", { id: item.id });
      onChanged(path);
    });
  return {
    async create(kind, folder) {
      const add = async (name: string) => {
        const { path } = await post("entries", { path: joinPath(folder, pathOfName(name.trim())), kind });
        onChanged(path);
        if (kind === "file") onCreated(path);
      };
      await askText(kind === "file" ? "New file" : "New folder", "Name", "", {
        action: "Create",
        attempt: (name) => problemOf(add(name)),
      });
    },
    async rename(entry) {
      const old = nameOf(entry.path);
      const pathOf = (name: string) => joinPath(parentOf(entry.path), old.includes("%") ? name : pathOfName(name));
      await askText("Rename", "Name", old, {
        action: "Rename",
        attempt: (name) => problemOf(relocate(entry, pathOf(name))),
      });
    },
    async move(entry) {
      const label = "Folder (empty for the top)";
      const pathIn = (folder: string) => joinPath(folder.replace(/^\/+|\/+$/g, ""), nameOf(entry.path));
      await askText(`Move ${escapeInvisible(entry.name)}`, label, parentOf(entry.path), {
        action: "Move",
        optional: true,
        attempt: (folder) => problemOf(relocate(entry, pathIn(folder))),
      });
    },
    async remove(entry) {
      const drafts = draftsBelow(draftKey(sid, entry.path));
      const title = `Delete ${escapeInvisible(entry.name)}?`;
      if (drafts.length && !(await askConfirmation(title, "Its unsaved changes are lost.", "Delete")).confirmed) return;
      await attempt(async () => {
        const address = workspaceAddress(sid, "entries", { path: entry.path });
        const item = await api.call<TrashedItemResponse>("DELETE", address, undefined, {}, LONG_MS);
        for (const key of drafts) keepDraft(key, null);
        onChanged(null);
        toasts.show(`Deleted ${escapeInvisible(entry.name)}`, { name: "Undo", run: () => void restore(item) });
      });
    },
    async upload(files, folder) {
      let uploaded: string | null = null;
      for (const [n, file] of files.entries()) {
        toasts.show(files.length > 1 ? `Uploading ${n + 1} of ${files.length}…` : `Uploading ${file.name}…`);
        try {
          const address = workspaceAddress(sid, "upload", { path: joinPath(folder, pathOfName(file.name)) });
          const headers = { "Content-Type": "application/octet-stream" };
          const entry = await api.call<WorkspaceEntryResponse>("POST", address, file.slice(), headers, UPLOAD_MS);
          uploaded = entry.path;
        } catch (error) {
          if (uploaded !== null) onChanged(uploaded);
          return toasts.show(`${file.name} was not uploaded. ${errorMessage(error)}`);
        }
      }
      if (uploaded === null) return;
      onChanged(uploaded);
      toasts.show(files.length > 1 ? `Uploaded ${files.length} files` : `Uploaded ${files[0]?.name}`);
    },
  };
}

const LONG_MS = 60_000;
const UPLOAD_MS = 30 * 60_000;

/** Asks for files of this device. */
export function chooseFiles(onFiles: (files: readonly File[]) => void): void {
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = true;
  input.addEventListener("change", () => onFiles([...(input.files ?? [])]));
  input.click();
}

/** What can be added to a folder. */
export function folderMenu(actions: FileActions, folder: string): readonly MenuItem[] {
  return [
    { name: "New file", icon: "file", run: () => void actions.create("file", folder) },
    { name: "New folder", icon: "folder", run: () => void actions.create("directory", folder) },
    { name: "Upload files", icon: "upload", run: () => chooseFiles((files) => void actions.upload(files, folder)) },
  ];
}

export function entryMenu(sid: string, actions: FileActions, entry: WorkspaceEntryResponse): readonly MenuItem[] {
  const { path, kind } = entry;
  if (kind === "other") return [];
  const call = isDirectory(entry) ? "archive" : "content";
  const address = workspaceAddress(sid, call, { path, download: call === "content" });
  return [
    ...(kind === "directory" ? folderMenu(actions, path) : []),
    { name: "Rename", icon: "edit", run: () => void actions.rename(entry) },
    { name: "Move", icon: "right", run: () => void actions.move(entry) },
    ...(kind === "link" && entry.target === null
      ? []
      : [{ name: "Download", icon: "download", run: () => location.assign(withRoot(address)) } as const]),
    { name: "Delete", icon: "trash", danger: true, run: () => void actions.remove(entry) },
  ];
}

/** The files among what was dropped; folders cannot be uploaded. */
export function droppedFiles(data: DataTransfer): readonly File[] {
  return [...data.items]
    .filter((item) => item.kind === "file" && !item.webkitGetAsEntry()?.isDirectory)
    .flatMap((item) => item.getAsFile() ?? []);
}

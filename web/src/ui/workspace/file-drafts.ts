// Changes to files that are not saved yet. They are kept while other files and chats are shown; before the page is
// closed or reloaded, the browser asks.

import { Store } from "../../core/store.ts";
import { type LineEndings, lineEndingsOf, toTextField } from "../../core/text-editing.ts";

/** A version of a file, as a text field has it. */
export interface FileVersion {
  readonly saved: string;
  readonly etag: string;
  readonly lineEndings: LineEndings;
}

export interface FileDraft extends FileVersion {
  readonly text: string;
}

export const versionOf = (text: string, etag: string): FileVersion => ({
  saved: toTextField(text),
  etag,
  lineEndings: lineEndingsOf(text),
});

export const fileDrafts = new Store<ReadonlyMap<string, FileDraft>>(new Map());

const warn = (event: BeforeUnloadEvent) => event.preventDefault();
fileDrafts.subscribe(() => {
  if (fileDrafts.get().size) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
});

export const draftKey = (sid: string, path: string): string => `${sid}/${path}`;

export function keepDraft(key: string, draft: FileDraft | null): void {
  const drafts = new Map(fileDrafts.get());
  if (draft !== null && draft.text !== draft.saved) drafts.set(key, draft);
  else if (!drafts.delete(key)) return;
  fileDrafts.set(drafts);
}

/** The keys of the drafts of a file, or of all files in a folder. */
export function draftsBelow(key: string): readonly string[] {
  return [...fileDrafts.get().keys()].filter((each) => each === key || each.startsWith(`${key}/`));
}

/** Follows a file or folder that was moved. */
export function moveDrafts(from: string, to: string): void {
  const drafts = new Map(fileDrafts.get());
  for (const key of draftsBelow(from)) {
    const draft = drafts.get(key);
    drafts.delete(key);
    if (draft) drafts.set(to + key.slice(from.length), draft);
  }
  fileDrafts.set(drafts);
}

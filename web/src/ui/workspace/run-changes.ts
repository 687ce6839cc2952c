// The change sets of the chat that is shown, for the badges of its messages: read once for all that appear together.

import type { Api } from "../../core/api.ts";
import type { ChangeSetListResponse, ChangeSetResponse } from "../../core/api-types.ts";
import { Store } from "../../core/store.ts";
import { workspaceAddress } from "../../core/workspace.ts";

interface LoadedSets {
  readonly sid: string;
  /** The newest message that they were read for: those of older ones are among them. */
  readonly upTo: string;
  readonly sets: readonly ChangeSetResponse[];
}

export const changeSets = new Store<LoadedSets | null>(null);
/** The set that a message asks to be shown. */
export const wantedSet = new Store<string | null>(null);

let waiting: { sid: string; upTo: string } | null = null;

/** Reads the sets if the run of a message may not be among those that were read. */
export function loadChangeSets(api: Api, sid: string, createdAt: string): void {
  const known = changeSets.get();
  if (known?.sid === sid && createdAt <= known.upTo) return;
  const isStarted = waiting?.sid === sid;
  waiting = { sid, upTo: isStarted && waiting && waiting.upTo > createdAt ? waiting.upTo : createdAt };
  if (isStarted) return;
  setTimeout(async () => {
    const read = waiting;
    waiting = null;
    if (!read) return;
    const sets = await api.get<ChangeSetListResponse>(workspaceAddress(read.sid, "changes")).then(
      ({ items }) => items,
      () => [], // this chat has no files, or not here
    );
    changeSets.set({ ...read, sets });
  }, 0);
}

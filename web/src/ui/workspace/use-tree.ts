// The directories that are loaded: each level a page at a time, read again when files may have changed.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { WorkspaceEntryListResponse, WorkspaceEntryResponse } from "../../core/api-types.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp } from "../context.ts";

export interface Level {
  readonly items: readonly WorkspaceEntryResponse[];
  readonly next: string | null;
  readonly total: number;
  readonly complete: boolean;
  readonly problem: string | null;
  readonly loading: boolean;
}

const EMPTY: Level = { items: [], next: null, total: 0, complete: true, problem: null, loading: true };
const PAGE = 200;
/** More pages of a level are not read again at once. */
const MAX_PAGES = 5;

const FILTER_DELAY_MS = 150;

export interface Tree {
  readonly levels: ReadonlyMap<string, Level>;
  readonly load: (path: string) => Promise<void>;
  readonly loadMore: (path: string) => Promise<void>;
  /** A directory that is collapsed is not kept up to date, and neither are those in it. */
  readonly forget: (path: string) => void;
}

/** `base` is the directory that is shown; the filter applies to its own entries. `version`: changes with the files. */
export function useTree(sid: string, base: string, hidden: boolean, filter: string, version: string): Tree {
  const app = useApp();
  const [levels, setLevels] = useState<ReadonlyMap<string, Level>>(new Map());
  const latest = useRef({ levels, filter });
  useLayoutEffect(() => {
    latest.current = { levels, filter };
  }, [levels, filter]);
  const applied = useRef(filter);
  const shown = useRef(base);
  const requests = useRef(new Map<string, AbortController>());

  const read = useCallback(
    async (path: string, cursor: string | null, pages: number, begun: readonly WorkspaceEntryResponse[]) => {
      requests.current.get(path)?.abort();
      const request = new AbortController();
      requests.current.set(path, request);
      const put = (level: Level) => {
        if (!request.signal.aborted) setLevels((all) => new Map(all).set(path, level));
      };
      const parameters = { path, hidden, filter: path === base ? applied.current : "", limit: PAGE };
      try {
        let items = begun;
        let next = cursor;
        for (let page = 0; page < pages; page++) {
          const address = workspaceAddress(sid, "entries", { ...parameters, cursor: next });
          const found = await app.api.get<WorkspaceEntryListResponse>(address, request.signal);
          items = [...items, ...found.items];
          next = found.next;
          if (next === null || page === pages - 1) return put({ ...found, items, problem: null, loading: false });
        }
      } catch (error) {
        put({ ...(latest.current.levels.get(path) ?? EMPTY), problem: errorMessage(error), loading: false });
      }
    },
    [app, sid, base, hidden],
  );
  const load = useCallback(
    (path: string) => {
      const { levels: known, filter: sought } = latest.current;
      if (!known.has(path)) {
        // It is read again with the others, from now on.
        latest.current = { levels: new Map(known).set(path, EMPTY), filter: sought };
        setLevels((all) => (all.has(path) ? all : new Map(all).set(path, EMPTY)));
      }
      const pages = Math.ceil((latest.current.levels.get(path)?.items.length ?? 0) / PAGE);
      return read(path, null, Math.min(Math.max(pages, 1), MAX_PAGES), []);
    },
    [read],
  );
  const loadMore = useCallback(
    async (path: string) => {
      const level = latest.current.levels.get(path);
      if (level?.next) await read(path, level.next, 1, level.items);
    },
    [read],
  );
  const keep = useCallback((isKept: (path: string) => boolean) => {
    for (const [path, request] of requests.current) if (!isKept(path)) request.abort();
    setLevels((all) => new Map([...all].filter(([path]) => isKept(path))));
  }, []);
  const forget = useCallback(
    (path: string) => keep((other) => other !== path && !other.startsWith(`${path}/`)),
    [keep],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: everything is read again when files may have changed
  useEffect(() => {
    const open = requests.current;
    applied.current = latest.current.filter;
    const isMoved = shown.current !== base;
    shown.current = base;
    if (isMoved) keep((path) => path === base); // below it, everything is collapsed again
    for (const path of new Set([base, ...(isMoved ? [] : latest.current.levels.keys())])) void load(path);
    return () => {
      for (const request of open.values()) request.abort();
    };
  }, [load, base, version]);
  useEffect(() => {
    if (filter === applied.current) return;
    const timer = setTimeout(() => {
      if (filter === applied.current) return;
      applied.current = filter;
      void read(base, null, 1, []);
    }, FILTER_DELAY_MS);
    return () => clearTimeout(timer);
  }, [read, base, filter]);
  return { levels, load, loadMore, forget };
}

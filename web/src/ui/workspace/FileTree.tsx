// The tree of files: directories open in place, with the keys of a tree.

import { type FocusEvent, type KeyboardEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { WorkspaceEntryResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { breadcrumbs, parentOf } from "../../core/workspace.ts";
import { formatCount, formatSize } from "../format.ts";
import { iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import text from "../widgets/text.module.css";
import type { FileActions } from "./use-file-actions.ts";
import type { Level, Tree } from "./use-tree.ts";
import styles from "./Workspace.module.css";

interface Row {
  readonly key: string;
  readonly level: number;
  readonly entry: WorkspaceEntryResponse | null;
  /** Of the directory that the row is in. */
  readonly path: string;
  readonly note: string;
}

interface Props {
  tree: Tree;
  base: string;
  selected: string | null;
  onOpen: (path: string) => void;
  actions: FileActions;
  /** What gets the focus once it is listed. */
  focused: string | null;
  onMenu: (entry: WorkspaceEntryResponse, anchor: HTMLElement) => void;
}

export const isDirectory = (entry: WorkspaceEntryResponse) =>
  entry.kind === "directory" || entry.target === "directory";
/** Pipes and devices stay as they are. */
const isChangeable = (entry: WorkspaceEntryResponse | null): entry is WorkspaceEntryResponse =>
  entry !== null && entry.kind !== "other";
const isFile = (entry: WorkspaceEntryResponse) => entry.kind === "file" || entry.target === "file";

export function FileTree({ tree, base, selected, onOpen, actions, focused, onMenu }: Props) {
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState<string | null>(selected);
  const list = useRef<HTMLDivElement>(null);
  const { load } = tree;
  const root = tree.levels.get(base);
  const rows = listRows(tree.levels, base, expanded, 1);
  const lastAt = useRef(0); // when the active row is gone, the one in its place is active
  const active = rows.find(({ key }) => key === current) ?? rows[Math.min(lastAt.current, rows.length - 1)];
  const activeAt = active ? rows.indexOf(active) : 0;
  useEffect(() => {
    lastAt.current = activeAt;
  }, [activeAt]);

  useEffect(() => {
    if (selected !== null) setCurrent(selected);
  }, [selected]);

  const toggle = (path: string, open: boolean) => {
    if (open) {
      setExpanded(new Set(expanded).add(path));
      void tree.load(path);
    } else {
      setExpanded(new Set([...expanded].filter((each) => each !== path && !each.startsWith(`${path}/`))));
      tree.forget(path);
    }
  };
  const activate = ({ entry, path }: Row) => {
    if (entry === null) void tree.loadMore(path);
    else if (isDirectory(entry)) toggle(entry.path, !expanded.has(entry.path));
    else if (isFile(entry)) onOpen(entry.path);
  };
  const focus = (row: Row | undefined) => {
    if (!row) return;
    setCurrent(row.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.key)}"]`)?.focus();
  };
  useFocusedRow(list, focused, rows, setCurrent);
  const hadFocus = useFocusReturn(list, active?.key, setCurrent);
  useEffect(() => {
    if (focused === null) return;
    const folders = breadcrumbs(parentOf(focused)).map(({ path }) => path);
    const below = folders.filter((path) => !base || path.startsWith(`${base}/`));
    setExpanded((before) => new Set([...before, ...below]));
    for (const path of below) void load(path);
  }, [focused, base, load]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!active || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = rows.indexOf(active);
    const { entry } = active;
    const open = entry !== null && expanded.has(entry.path);
    const keys = new Map<string, () => void>([
      ["ArrowDown", () => focus(rows[at + 1])],
      ["ArrowUp", () => focus(rows[at - 1])],
      ["Home", () => focus(rows[0])],
      ["End", () => focus(rows.at(-1))],
      ["Enter", () => activate(active)],
      [" ", () => activate(active)],
      ["F2", () => isChangeable(entry) && void actions.rename(entry)],
      ["Delete", () => isChangeable(entry) && void actions.remove(entry)],
      [
        "ArrowRight",
        () => {
          if (entry && isDirectory(entry) && !open) toggle(entry.path, true);
          else if (open) focus(rows[at + 1]);
        },
      ],
      [
        "ArrowLeft",
        () => {
          if (entry && open) toggle(entry.path, false);
          else focus(rows.find(({ key }) => key === active.path));
        },
      ],
    ]);
    const action = keys.get(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  };

  if (!root) return <Loading />;
  if (root.problem && !root.items.length) return <p className={styles.message}>{root.problem}</p>;
  if (!root.items.length) return root.loading ? <Loading /> : <p className={styles.message}>No files here</p>;
  return (
    <>
      <div
        ref={list}
        className={styles.tree}
        role="tree"
        aria-label="Files"
        onKeyDown={onKeyDown}
        tabIndex={-1}
        {...hadFocus}
      >
        {rows.map((row) => (
          <TreeRow
            key={row.key}
            row={row}
            open={row.entry !== null && isDirectory(row.entry) ? expanded.has(row.entry.path) : undefined}
            selected={row.key === selected}
            focusable={row === active}
            onClick={() => {
              setCurrent(row.key);
              activate(row);
            }}
            onMenu={(entry, anchor) => {
              setCurrent(row.key);
              onMenu(entry, anchor);
            }}
          />
        ))}
      </div>
      {!root.complete && (
        <p className={styles.message}>This folder has more than a million files. Not all of them are listed.</p>
      )}
    </>
  );
}

/** Moves the focus to a row when it appears, once. */
function useFocusedRow(
  list: RefObject<HTMLDivElement | null>,
  focused: string | null,
  rows: readonly Row[],
  setCurrent: (key: string) => void,
): void {
  const done = useRef<string | null>(null);
  const appeared = focused !== null && rows.some(({ key }) => key === focused);
  useEffect(() => {
    if (focused === null) done.current = null;
    if (!appeared || focused === null || done.current === focused) return;
    done.current = focused;
    setCurrent(focused);
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }, [list, focused, appeared, setCurrent]);
}

/** The row with the focus is the active one; when it is gone, the next active row gets the focus. */
function useFocusReturn(
  list: RefObject<HTMLDivElement | null>,
  active: string | undefined,
  setCurrent: (key: string) => void,
) {
  const hadFocus = useRef(false);
  useEffect(() => {
    if (!active || !hadFocus.current || document.activeElement !== document.body) return;
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(active)}"]`)?.focus();
  }, [list, active]);
  return {
    onFocus: (event: FocusEvent) => {
      hadFocus.current = true;
      const key = event.target.closest<HTMLElement>("[data-key]")?.dataset.key;
      if (key !== undefined) setCurrent(key);
    },
    onBlur: (event: FocusEvent) => {
      if (event.relatedTarget !== null) hadFocus.current = false;
    },
  };
}

function Loading() {
  return (
    <div className={styles.message}>
      <Spinner name="Loading files" />
    </div>
  );
}

interface TreeRowProps {
  row: Row;
  open: boolean | undefined;
  selected: boolean;
  focusable: boolean;
  onClick: () => void;
  onMenu: (entry: WorkspaceEntryResponse, anchor: HTMLElement) => void;
}

function TreeRow({ row: { key, level, entry, note }, open, selected, focusable, onClick, onMenu }: TreeRowProps) {
  const name = entry === null ? note : escapeInvisible(entry.name);
  const inert = entry !== null && !isDirectory(entry) && !isFile(entry);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys of all rows
    <div
      role="treeitem"
      aria-level={level}
      aria-label={entry !== null && note ? `${name} ${note}` : name}
      aria-expanded={open}
      aria-selected={selected}
      aria-disabled={inert || undefined}
      tabIndex={focusable ? 0 : -1}
      className={classNames(styles.row, entry === null && styles.more, inert && styles.inert)}
      data-key={key}
      data-folder={entry === null ? undefined : entry.kind === "directory" ? entry.path : parentOf(entry.path)}
      data-level={Math.min(level, 12)}
      onClick={onClick}
      onContextMenu={(event) => {
        if (!isChangeable(entry)) return;
        event.preventDefault();
        event.currentTarget.focus();
        onMenu(entry, event.currentTarget);
      }}
    >
      {entry !== null && (
        <>
          <span className={styles.chevron}>{open !== undefined && <Icon name={open ? "down" : "right"} />}</span>
          <Icon name={open !== undefined ? "folder" : "file"} />
        </>
      )}
      <span className={text.ellipsis}>{name}</span>
      {entry !== null && note && " "}
      {entry !== null && note && <span className={styles.note}>{note}</span>}
      {isChangeable(entry) && (
        <button
          type="button"
          className={classNames(iconButtonClass, styles.rowMenu)}
          aria-label={`Actions for ${name}`}
          title="Actions"
          tabIndex={-1} // the keyboard opens the menu of a row with its own key
          onClick={(event) => {
            event.stopPropagation();
            onMenu(entry, event.currentTarget);
          }}
        >
          <Icon name="more" />
        </button>
      )}
    </div>
  );
}

function listRows(
  levels: ReadonlyMap<string, Level>,
  path: string,
  expanded: ReadonlySet<string>,
  depth: number,
): readonly Row[] {
  const level = levels.get(path);
  const rows: Row[] = [];
  const add = (key: string, note: string) =>
    rows.push({ key: `${path}/${key}`, level: depth, entry: null, path, note });
  if (!level || (level.loading && !level.items.length)) add(":loading", "Loading…");
  for (const entry of level?.items ?? []) {
    rows.push({ key: entry.path, level: depth, entry, path: parentOf(entry.path), note: noteOf(entry) });
    if (isDirectory(entry) && expanded.has(entry.path)) {
      rows.push(...listRows(levels, entry.path, expanded, depth + 1));
    }
  }
  if (level?.problem) add(":problem", level.problem);
  else if (level?.next) add(":more", `Show more (${formatCount(level.total - level.items.length)} left)`);
  else if (level && !level.items.length && !level.loading) add(":empty", "Empty");
  return rows;
}

function noteOf(entry: WorkspaceEntryResponse): string {
  if (entry.kind === "link") return entry.target === null ? "Link to elsewhere" : "Link";
  if (entry.kind === "other") return "Not a file";
  return entry.size === null ? "" : formatSize(entry.size);
}

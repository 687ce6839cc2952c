// The files of a directory: the tree, the file that is shown or edited, and what can be done with them.

import { type DragEvent, useEffect, useRef, useState } from "react";
import type { WorkspaceEntryListResponse, WorkspaceEntryResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { breadcrumbs, nameOf, parentOf, pathInWorkspace, workspaceAddress } from "../../core/workspace.ts";
import { hasFiles } from "../chat/use-file-drop.ts";
import { useApp, useStore } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { ContextMenu, Menu } from "../widgets/Menu.tsx";
import { FilePreview } from "./FilePreview.tsx";
import { FileTree, isDirectory } from "./FileTree.tsx";
import { draftKey, fileDrafts } from "./file-drafts.ts";
import { droppedFiles, entryMenu, folderMenu, useFileActions } from "./use-file-actions.ts";
import { useTree } from "./use-tree.ts";
import styles from "./Workspace.module.css";
import { wantedFile, wantsFocus, workspaceView } from "./workspace-state.ts";

interface OpenMenu {
  readonly entry: WorkspaceEntryResponse;
  readonly anchor: HTMLElement;
}

export function WorkspaceBrowser({ sid, directory, version }: { sid: string; directory: string; version: string }) {
  const app = useApp();
  const [base, setBase] = useState("");
  const [file, setFile] = useState<string | null>(null);
  const [hidden, setHidden] = useState(false);
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const wanted = useStore(wantedFile);
  const [changes, setChanges] = useState(0);
  const [focused, setFocused] = useState<string | null>(null);
  const [menu, setMenu] = useState<OpenMenu | null>(null);
  const [editing, setEditing] = useState(false);
  const current = `${version} ${changes}`;
  const tree = useTree(sid, base, hidden, filter, current);
  const readAgain = () => setChanges((count) => count + 1);
  const actions = useFileActions(
    sid,
    (path) => {
      setFocused(path);
      readAgain();
    },
    (path) => {
      open(path);
      setEditing(true);
    },
  );
  const [over, dropHandlers] = useDrop((files, folder) => void actions.upload(files, folder ?? base));
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!wanted) return;
    wantedFile.set(null);
    workspaceView.set("files");
    const path = pathInWorkspace(wanted.named, directory);
    setProblem(path === null ? `${escapeInvisible(wanted.named)} is not in this chat’s folder.` : null);
    if (path === null) return setFile(null);
    const show = (isDirectory: boolean) => {
      setEditing(!isDirectory && fileDrafts.get().has(draftKey(sid, path)));
      setFile(isDirectory ? null : path);
      setBase(isDirectory ? path : parentOf(path));
    };
    const name = path.slice(path.lastIndexOf("/") + 1);
    const beside = { path: parentOf(path), hidden: true, filter: name.includes("%") ? "" : name, limit: 200 };
    app.api.get<WorkspaceEntryListResponse>(workspaceAddress(sid, "entries", beside)).then(
      ({ items }) => show(items.some((entry) => entry.path === path && isDirectory(entry))),
      () => show(false), // which says why it cannot be shown
    );
  }, [app, sid, wanted, directory]);
  /** Says that what was typed in the file that is left is kept. */
  const leaveFile = (next: string | null) => {
    if (file === null || file === next || !fileDrafts.get().has(draftKey(sid, file))) return;
    const back = { name: "Open", run: () => open(file) };
    app.toasts.show(`Unsaved changes in ${escapeInvisible(nameOf(file))}`, back, sid);
  };
  const open = (path: string | null) => {
    setProblem(null);
    leaveFile(path);
    setFile(path);
    setEditing(path !== null && fileDrafts.get().has(draftKey(sid, path)));
    wantsFocus.set(true); // what was chosen is hidden, and would lose it
    body.current?.scrollTo(0, 0);
  };
  const openDirectory = (path: string) => {
    setBase(path);
    setFilter("");
    open(null);
  };
  return (
    <>
      <nav className={styles.crumbs} aria-label="Folder">
        <ol>
          <li>
            <Crumb name="Chat folder" isLast={base === "" && file === null} onClick={() => openDirectory("")} />
          </li>
          {breadcrumbs(file ?? base).map(({ name, path }) => (
            <li key={path}>
              <Crumb name={name} isLast={path === (file ?? base)} onClick={() => openDirectory(path)} />
            </li>
          ))}
        </ol>
        {file === null && <Menu name="Add files" icon="plus" items={folderMenu(actions, base)} />}
        {file === null && (
          <a
            className={iconButtonClass}
            href={withRoot(workspaceAddress(sid, "archive", { path: base }))}
            download
            aria-label="Download folder"
            title="Download folder"
          >
            <Icon name="download" />
          </a>
        )}
      </nav>
      {problem && (
        <p className={styles.message} role="alert">
          {problem}
        </p>
      )}
      <div className={styles.controls} hidden={file !== null}>
        <input
          type="search"
          aria-label="Filter files"
          placeholder="Filter"
          value={filter}
          maxLength={200}
          onChange={(event) => setFilter(event.target.value)}
        />
        <label>
          <input type="checkbox" checked={hidden} onChange={(event) => setHidden(event.target.checked)} />
          Hidden files
        </label>
      </div>
      <div
        ref={body}
        className={classNames(styles.body, over !== null && styles.draggedOver)}
        data-takes-files={file === null || undefined}
        {...(file === null ? dropHandlers : {})}
      >
        {over !== null && (
          <p className={styles.dropHint}>Upload to {over || base ? escapeInvisible(over || base) : "this folder"}</p>
        )}
        <div hidden={file !== null}>
          <FileTree
            key={base}
            tree={tree}
            base={base}
            selected={file}
            onOpen={open}
            actions={actions}
            focused={focused}
            onMenu={(entry, anchor) => setMenu({ entry, anchor })}
          />
        </div>
        {file !== null && (
          <FilePreview
            key={file}
            sid={sid}
            path={file}
            version={current}
            editing={editing}
            onEditing={setEditing}
            onChanged={readAgain}
          />
        )}
      </div>
      {menu && (
        <ContextMenu
          key={menu.entry.path}
          name={`Actions for ${escapeInvisible(menu.entry.name)}`}
          items={entryMenu(sid, actions, menu.entry)}
          anchor={menu.anchor}
          onClose={() => setMenu(null)}
        />
      )}
    </>
  );
}

function Crumb({ name, isLast, onClick }: { name: string; isLast: boolean; onClick: () => void }) {
  return isLast ? (
    <span aria-current="page">{escapeInvisible(name)}</span>
  ) : (
    <button type="button" onClick={onClick}>
      {escapeInvisible(name)}
    </button>
  );
}

/** Takes dropped files. Returns the folder that they are held over: null for none, empty for the one that is shown. */
function useDrop(onFiles: (files: readonly File[], folder: string | null) => void) {
  const [over, setOver] = useState<string | null>(null);
  const folderOf = ({ target }: DragEvent) =>
    target instanceof Element ? (target.closest<HTMLElement>("[data-folder]")?.dataset.folder ?? null) : null;
  const handlers = {
    onDragOver(event: DragEvent) {
      if (hasFiles(event)) setOver(folderOf(event) ?? "");
    },
    onDragLeave(event: DragEvent) {
      const { currentTarget, relatedTarget } = event;
      if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setOver(null);
    },
    onDrop(event: DragEvent) {
      setOver(null);
      const files = droppedFiles(event.dataTransfer);
      if (files.length) onFiles(files, folderOf(event));
    },
  };
  return [over, handlers] as const;
}

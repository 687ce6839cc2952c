// The files of a chat beside it, or over it on narrow screens.

import { Suspense, useCallback, useEffect, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { WorkspaceLocationResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp, useStore } from "../context.ts";
import { lazyComponent } from "../lazy-load.ts";
import { leaveDrawerEntry, openDrawerEntry } from "../router.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { Segments } from "../widgets/Segments.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import styles from "./Workspace.module.css";
import { WorkspaceBrowser } from "./WorkspaceBrowser.tsx";
import { PANEL_ID } from "./WorkspaceButton.tsx";
import { showWorkspace, type WorkspaceView, wantsFocus, workspaceView } from "./workspace-state.ts";

const ChangesView = lazyComponent(() => import("./ChangesView.tsx"));
const TrashView = lazyComponent(() => import("./TrashView.tsx"));

interface Props {
  sid: string;
  /** Whether the panel covers the chat. */
  covers: boolean;
  /** Changes when an agent may have changed files, or the directory. */
  version: string;
}

export default function WorkspacePanel({ sid, covers, version }: Props) {
  const panel = useRef<HTMLElement>(null);
  const { location, problem } = useLocation(sid, version);
  const focus = useStore(wantsFocus);
  const close = useCallback(() => showWorkspace(false), []);
  useCovering(covers, close);
  useEffect(() => {
    if (!focus) return;
    panel.current?.focus();
    wantsFocus.set(false);
  }, [focus]);
  const reason = location && !location.available ? location.reason : null;
  return (
    <aside
      ref={panel}
      id={PANEL_ID}
      className={styles.panel}
      aria-label="Files"
      tabIndex={-1}
      data-covers={covers || undefined}
    >
      <header className={styles.header}>
        <h2>Files</h2>
        {location && (
          <span className={styles.directory} title={location.directory}>
            {location.origin === "private" ? "This chat’s own folder" : escapeInvisible(location.directory)}
          </span>
        )}
        <IconButton name="Close files" icon="close" onClick={close} />
      </header>
      {problem && <p className={styles.message}>{problem}</p>}
      {reason && <p className={styles.message}>{sentence(reason)}</p>}
      {!location && !problem && (
        <div className={styles.message}>
          <Spinner name="Loading files" />
        </div>
      )}
      {location?.available && (
        <WorkspaceTabs key={location.directory} sid={sid} directory={location.directory} version={version} />
      )}
    </aside>
  );
}

interface TabsProps {
  sid: string;
  directory: string;
  version: string;
}

const TABS = [
  ["files", "Files"],
  ["changes", "Changes"],
  ["trash", "Trash"],
] as const satisfies readonly (readonly [WorkspaceView, string])[];

/** The views of the files. The tree stays as it was while another view is shown. */
function WorkspaceTabs({ sid, directory, version }: TabsProps) {
  const view = useStore(workspaceView);
  const [changes, setChanges] = useState(0);
  const current = `${version} ${changes}`;
  const onChanged = () => setChanges((count) => count + 1);
  return (
    <>
      <div className={styles.tabs}>
        <Segments label="View" options={TABS} value={view} onChange={(next) => workspaceView.set(next)} />
      </div>
      <div className={styles.files} hidden={view !== "files"}>
        <WorkspaceBrowser sid={sid} directory={directory} version={current} />
      </div>
      <Suspense fallback={null}>
        {view === "changes" && <ChangesView sid={sid} version={current} onChanged={onChanged} />}
        {view === "trash" && <TrashView sid={sid} version={current} onChanged={onChanged} />}
      </Suspense>
    </>
  );
}

function useLocation(sid: string, version: string) {
  const app = useApp();
  const [location, setLocation] = useState<WorkspaceLocationResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an agent may have made the directory
  useEffect(() => {
    let current = true;
    app.api.get<WorkspaceLocationResponse>(workspaceAddress(sid, "")).then(
      (found) => {
        if (!current) return;
        setLocation(found);
        setProblem(null);
      },
      (error) => current && setProblem(errorMessage(error)),
    );
    return () => {
      current = false;
    };
  }, [app, sid, version]);
  return { location, problem };
}

/** While the panel covers the chat, Escape and Back close it, and what had the focus gets it back. */
function useCovering(covers: boolean, close: () => void): void {
  useEffect(() => {
    if (!covers) return;
    openDrawerEntry();
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open], :popover-open")) close();
    };
    addEventListener("keydown", onKeyDown);
    addEventListener("popstate", close);
    return () => {
      removeEventListener("keydown", onKeyDown);
      removeEventListener("popstate", close);
      leaveDrawerEntry();
      requestAnimationFrame(() => document.querySelector<HTMLElement>("button[aria-label='Files']")?.focus());
    };
  }, [covers, close]);
}

const sentence = (reason: string): string => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;

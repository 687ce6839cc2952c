// What the answers of a chat changed in its files, newest first: differences, and restoring what was before.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ApiError, errorMessage } from "../../core/api.ts";
import type {
  ChangedFileListResponse,
  ChangedFileResponse,
  ChangeSetListResponse,
  ChangeSetResponse,
  RestoredFilesResponse,
} from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatCount, formatDateTime, formatTime } from "../format.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import text from "../widgets/text.module.css";
import { ChangedFileDiff } from "./ChangedFileDiff.tsx";
import styles from "./Changes.module.css";
import { wantedSet } from "./run-changes.ts";
import panel from "./Workspace.module.css";

interface Props {
  sid: string;
  version: string;
  /** Files are to be read again. */
  onChanged: () => void;
}

type Restore = (set: string, paths: readonly string[] | null) => Promise<void>;

export default function ChangesView({ sid, version, onChanged }: Props) {
  const { api } = useApp();
  const [sets, setSets] = useState<readonly ChangeSetResponse[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [open, setOpen] = useState<string | null>(() => wantedSet.get());
  const wanted = useStore(wantedSet);
  const restore = useRestore(sid, onChanged, setProblem);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an agent may have changed files
  useEffect(() => {
    const request = new AbortController();
    api.get<ChangeSetListResponse>(workspaceAddress(sid, "changes"), request.signal).then(
      ({ items, unavailable }) => {
        if (unavailable) return setProblem(unavailable);
        setSets(items);
        setOpen((before) => before ?? items[0]?.id ?? null);
      },
      (error) => !request.signal.aborted && setProblem(errorMessage(error)),
    );
    return () => request.abort();
  }, [api, sid, version]);
  useEffect(() => {
    if (wanted === null) return;
    setOpen(wanted);
    wantedSet.set(null);
  }, [wanted]);
  return (
    <div className={panel.view}>
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      {!sets && !problem && <Spinner name="Loading changes" />}
      {sets?.length === 0 && (
        <p className={text.quiet}>
          No changes yet. What answers change in these files is listed here, and can be restored.
        </p>
      )}
      <ul className={styles.sets} aria-label="Changes">
        {sets?.map((set) => (
          <ChangeSetItem
            key={set.id}
            sid={sid}
            set={set}
            open={open === set.id}
            onToggle={() => setOpen(open === set.id ? "" : set.id)}
            restore={restore}
          />
        ))}
      </ul>
    </div>
  );
}

/** Restores files; asks before it replaces what was changed since. */
function useRestore(sid: string, onChanged: () => void, onProblem: (problem: string | null) => void): Restore {
  const { api, toasts } = useApp();
  const latest = useRef(onChanged);
  useLayoutEffect(() => {
    latest.current = onChanged;
  }, [onChanged]);
  return useCallback(
    async function restore(set, paths) {
      const post = (overwrite: boolean) => {
        const address = workspaceAddress(sid, `changes/${encodeURIComponent(set)}/restore`);
        return api.call<RestoredFilesResponse>("POST", address, { paths, overwrite }, {}, LONG_MS);
      };
      try {
        const done = await post(false).catch(async (error: unknown) => {
          if (!(error instanceof ApiError && error.code === "files-changed")) throw error;
          const detail = `${error.message} What is there now can be brought back with Undo.`;
          const asked = await askConfirmation("Some files have changed since", detail, "Restore anyway");
          return asked.confirmed ? post(true) : null;
        });
        if (!done) return;
        const { id, restored, skipped } = done;
        onProblem(
          skipped.length
            ? `Not restored: ${skipped.map(({ path, reason }) => `${escapeInvisible(path)} (${reason})`).join(", ")}.`
            : null,
        );
        const undo = id === null ? undefined : { name: "Undo", run: () => void restore(id, null) };
        toasts.show(restored.length === 1 ? "Restored 1 file" : `Restored ${formatCount(restored.length)} files`, undo);
        latest.current();
      } catch (error) {
        onProblem(errorMessage(error));
      }
    },
    [api, sid, toasts, onProblem],
  );
}

interface ChangeSetItemProps {
  sid: string;
  set: ChangeSetResponse;
  open: boolean;
  onToggle: () => void;
  restore: Restore;
}

function ChangeSetItem({ sid, set, open, onToggle, restore }: ChangeSetItemProps) {
  const count = set.files === 1 ? "1 file" : `${formatCount(set.files)} files`;
  const what = `${set.kind === "run" ? "Changed" : "Restored"} ${count}`;
  const name = set.files ? what : "Changes not recorded";
  const at = formatTime(set.created_at);
  return (
    <li className={styles.set}>
      <div className={styles.head}>
        <button type="button" className={styles.toggle} aria-expanded={open} onClick={onToggle}>
          <Icon name={open ? "down" : "right"} />
          <span className={styles.about}>
            <span className={styles.title}>{name}</span>{" "}
            <time dateTime={set.created_at} title={formatDateTime(set.created_at)}>
              {at}
            </time>
          </span>
        </button>
        {set.files > 0 && (
          <Button
            small
            aria-label={`${set.kind === "run" ? "Restore all" : "Undo"}: ${name}, ${at}`}
            onClick={() => void restore(set.id, null)}
          >
            {set.kind === "run" ? "Restore all" : "Undo"}
          </Button>
        )}
      </div>
      {set.note && <p className={styles.note}>{set.note}</p>}
      {open && set.files > 0 && <ChangedFiles sid={sid} set={set.id} restore={restore} />}
    </li>
  );
}

function ChangedFiles({ sid, set, restore }: { sid: string; set: string; restore: Restore }) {
  const { api } = useApp();
  const [found, setFound] = useState<ChangedFileListResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  useEffect(() => {
    const request = new AbortController();
    api
      .get<ChangedFileListResponse>(workspaceAddress(sid, `changes/${encodeURIComponent(set)}`), request.signal)
      .then(setFound, (error) => !request.signal.aborted && setProblem(errorMessage(error)));
    return () => request.abort();
  }, [api, sid, set]);
  if (problem) return <p className={styles.note}>{problem}</p>;
  if (!found) return <Spinner name="Loading files" />;
  const left = found.total - found.items.length;
  return (
    <ul className={styles.files} aria-label="Changed files">
      {found.items.map((file) => (
        <li key={file.path}>
          <div className={styles.file}>
            <button
              type="button"
              className={styles.toggle}
              aria-expanded={shown === file.path}
              onClick={() => setShown(shown === file.path ? null : file.path)}
            >
              <span className={classNames(styles.kind, styles[file.kind])} title={KINDS[file.kind]} aria-hidden>
                {file.kind.charAt(0).toUpperCase()}
              </span>
              <span className={text.visuallyHidden}>{KINDS[file.kind]}: </span>
              <span className={styles.path}>{escapeInvisible(file.path)}</span>
            </button>
            {file.restorable && (
              <IconButton
                name={`Restore: ${escapeInvisible(file.path)}`}
                icon="undo"
                onClick={() => void restore(set, [file.path])}
              />
            )}
          </div>
          {file.reason && <p className={styles.note}>Cannot be restored: {file.reason}.</p>}
          {modeNote(file) && <p className={styles.note}>{modeNote(file)}</p>}
          {shown === file.path && <ChangedFileDiff sid={sid} set={set} path={file.path} />}
        </li>
      ))}
      {left > 0 && <li className={text.quiet}>{`${formatCount(left)} more files are not listed`}</li>}
    </ul>
  );
}

const KINDS = { created: "Created", modified: "Modified", deleted: "Deleted" } as const;
const LONG_MS = 60_000;

function modeNote({ before_mode: before, after_mode: after, what }: ChangedFileResponse): string | null {
  if (before === null || after === null || before === after) return null;
  const kind = what === "directory" ? "Permissions of the folder" : "Permissions";
  return `${kind}: ${before.toString(8)} → ${after.toString(8)}`;
}

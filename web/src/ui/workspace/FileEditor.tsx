// A text file as text to edit. What is typed is kept in `file-drafts` until it is saved.

import { type KeyboardEvent, type RefObject, useEffect, useId, useRef, useState } from "react";
import { ApiError, errorMessage } from "../../core/api.ts";
import type { WorkspaceFileResponse, WorkspacePreviewResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { fromTextField, indent, indentationOf, outdent, type TextEdit } from "../../core/text-editing.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { type ConflictingVersion, FileConflict } from "./FileConflict.tsx";
import styles from "./FileEditor.module.css";
import { draftKey, type FileVersion, fileDrafts, keepDraft, versionOf } from "./file-drafts.ts";

interface Props {
  sid: string;
  preview: WorkspacePreviewResponse;
  onClose: () => void;
  /** A version was saved, or another one was found. */
  onChanged: () => void;
}

export function FileEditor({ sid, preview, onClose, onChanged }: Props) {
  const { file } = preview;
  const { base, text, edited, setText, setBase } = useDraft(sid, preview);
  const { conflict, setConflict, problem, setProblem, saving, status, setStatus, save } = useSave(sid, file, {
    text,
    base,
    setBase,
    onChanged,
  });
  const area = useRef<HTMLTextAreaElement>(null);
  const hint = useId();
  useEffect(() => {
    if (!conflict) area.current?.focus();
  }, [conflict]);
  const close = async () => {
    const question = "What you changed in this file is not saved.";
    if (edited && !(await askConfirmation("Discard changes?", question, "Discard")).confirmed) return;
    keepDraft(draftKey(sid, file.path), null);
    onClose();
  };
  const takeTheirs = (theirs: ConflictingVersion) => {
    keepDraft(draftKey(sid, file.path), null);
    setConflict(null);
    onChanged();
    if (theirs.etag === null || theirs.text === null) return onClose();
    setBase(versionOf(theirs.text, theirs.etag));
    setStatus("Your changes were discarded");
  };
  if (conflict) {
    return (
      <FileConflict
        mine={text}
        theirs={conflict}
        saving={saving}
        onKeepMine={() => void save(conflict.etag)}
        onTakeTheirs={() => takeTheirs(conflict)}
        onBack={() => setConflict(null)}
      />
    );
  }
  return (
    <form
      className={styles.editor}
      aria-label={`Edit ${escapeInvisible(file.name)}`}
      onSubmit={(event) => {
        event.preventDefault();
        void save(base.etag);
      }}
    >
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      {edited && file.etag !== base.etag && (
        <p className={styles.note} role="note">
          This file has changed since you opened it. When you save, you can compare both versions.
        </p>
      )}
      {base.lineEndings.mixed && (
        <p className={styles.note} role="note">
          This file has different line endings. Saving makes them all the same.
        </p>
      )}
      <EditorField
        field={area}
        unit={indentationOf(base.saved)}
        text={text}
        label={`Text of ${escapeInvisible(file.name)}`}
        hint={hint}
        onText={setText}
      />
      <p id={hint} className={styles.hint}>
        Tab indents. Press Escape, then Tab to leave the text.
      </p>
      <div className={styles.bar}>
        <Button type="submit" variant="primary" small disabled={!edited || saving} aria-keyshortcuts="Control+S">
          {saving ? "Saving…" : "Save"}
        </Button>
        <Button small onClick={() => void close()}>
          {edited ? "Cancel" : "Done"}
        </Button>
        <span role="status">{edited ? "Unsaved changes" : status}</span>
      </div>
    </form>
  );
}

/** The text that is edited, and the version it is of. Until something is changed, both follow the file. */
function useDraft(sid: string, { file, text: current }: WorkspacePreviewResponse) {
  const key = draftKey(sid, file.path);
  const draft = useStore(fileDrafts).get(key);
  const [loaded, setBase] = useState(() => versionOf(current ?? "", file.etag));
  const base = draft ?? loaded;
  const text = draft?.text ?? loaded.saved;
  useEffect(() => {
    if (!fileDrafts.get().has(key)) setBase(versionOf(current ?? "", file.etag));
  }, [key, current, file.etag]);
  const setText = (text: string) => keepDraft(key, { ...base, text });
  return { base, text, edited: draft !== undefined, setText, setBase };
}

interface SaveOptions {
  text: string;
  base: FileVersion;
  setBase: (base: FileVersion) => void;
  onChanged: () => void;
}

function useSave(sid: string, file: WorkspaceFileResponse, { text, base, setBase, onChanged }: SaveOptions) {
  const app = useApp();
  const [conflict, setConflict] = useState<ConflictingVersion | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const [status, setStatus] = useState("");
  const key = draftKey(sid, file.path);
  /** `etag`: of the version to replace; null: the file was deleted, and is created again. */
  const save = async (etag: string | null) => {
    if (saving) return;
    setSaving(true);
    setProblem(null);
    const headers: Record<string, string> = etag === null ? { "If-None-Match": "*" } : { "If-Match": etag };
    const address = workspaceAddress(sid, "content", { path: file.path });
    const body = { text: fromTextField(text, base.lineEndings) };
    try {
      const saved = await app.api.call<WorkspaceFileResponse>("PUT", address, body, headers);
      const { lineEndings } = versionOf(body.text, saved.etag);
      const version = { saved: text, etag: saved.etag, lineEndings };
      setBase(version);
      const typed = fileDrafts.get().get(key)?.text ?? text; // more may have been typed meanwhile
      keepDraft(key, { ...version, text: typed });
      setConflict(null);
      setStatus("Saved");
      onChanged();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "file-changed") return setProblem(errorMessage(error));
      const { etag: current, text: theirs } = error.details as { etag?: string | null; text?: string | null };
      setConflict({ etag: current ?? null, text: theirs ?? null });
      onChanged();
    } finally {
      setSaving(false);
    }
  };
  return { conflict, setConflict, problem, setProblem, saving, status, setStatus, save };
}

interface EditorFieldProps {
  field: RefObject<HTMLTextAreaElement | null>;
  text: string;
  label: string;
  hint: string;
  /** What Tab inserts. */
  unit: string;
  onText: (text: string) => void;
}

function EditorField({ field, text, label, hint, unit, onText }: EditorFieldProps) {
  const leaves = useRef(false); // Escape was pressed: the next Tab moves the focus
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    const { key, currentTarget: area } = event;
    if (key === "Escape") {
      leaves.current = true;
      event.stopPropagation(); // it would close the files
    } else if (key === "s" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      area.form?.requestSubmit();
    } else if (key === "Tab" && !leaves.current && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      const change = event.shiftKey ? outdent : indent;
      applyEdit(area, change(text, area.selectionStart, area.selectionEnd, unit), onText);
    } else if (key !== "Shift" && key !== "Tab") leaves.current = false;
  };
  return (
    <textarea
      ref={field}
      className={styles.text}
      aria-label={label}
      aria-describedby={hint}
      value={text}
      wrap="off"
      spellCheck={false}
      autoCapitalize="off"
      autoComplete="off"
      onChange={(event) => onText(event.target.value)}
      onKeyDown={onKeyDown}
      onBlur={() => {
        leaves.current = false;
      }}
    />
  );
}

/** As if it had been typed, so that it can be undone. */
function applyEdit(area: HTMLTextAreaElement, edit: TextEdit, onText: (text: string) => void): void {
  if (!edit.text && edit.from === edit.to) return;
  area.setSelectionRange(edit.from, edit.to);
  const typed = edit.text ? document.execCommand("insertText", false, edit.text) : document.execCommand("delete");
  if (!typed) {
    area.setRangeText(edit.text, edit.from, edit.to);
    onText(area.value);
  }
  area.setSelectionRange(edit.start, edit.end);
}

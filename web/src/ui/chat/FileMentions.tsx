// Completes `@file` in the message box with files of the chat's agent. A chosen file is attached as it is now, if models
// can read it; its path is in the text in either case.

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { WorkspaceEntryResponse, WorkspacePathsResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { type Mention, mentionAt, mentionOf } from "../../core/mentions.ts";
import type { FilePart } from "../../core/types.ts";
import { nameOf, parentOf, workspaceAddress } from "../../core/workspace.ts";
import { useApp } from "../context.ts";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import picker from "../widgets/Picker.module.css";
import popover from "../widgets/popover.module.css";
import textStyles from "../widgets/text.module.css";
import styles from "./FileMentions.module.css";
import slash from "./SlashCommands.module.css";

interface Props {
  sid: string;
  area: RefObject<HTMLTextAreaElement | null>;
  text: string;
  onText: (text: string) => void;
  onAttach: (file: FilePart) => void;
}

interface Attached {
  readonly id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
}

const LIST_ID = "file-mentions";
const DELAY_MS = 120;
const SHOWN = 8;

export default function FileMentions({ sid, area, text, onText, onAttach }: Props) {
  const { api } = useApp();
  const mention = useMention(area, text);
  const found = useFoundFiles(sid, mention?.query ?? null);
  const [active, setActive] = useState(0);
  const cursor = useRef<number | null>(null);
  const items = mention ? found : [];
  const at = Math.min(active, items.length - 1);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text has other matches
  useEffect(() => setActive(0), [mention?.query]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the cursor moves when the text has changed
  useLayoutEffect(() => {
    if (cursor.current === null || !area.current) return;
    area.current.setSelectionRange(cursor.current, cursor.current);
    cursor.current = null;
  }, [area, text]);
  const choose = (entry: WorkspaceEntryResponse) => {
    const box = area.current;
    if (!mention || !box) return;
    const isDirectory = entry.kind === "directory";
    const inserted = mentionOf(entry.path, isDirectory);
    cursor.current = mention.start + inserted.length;
    onText(text.slice(0, mention.start) + inserted + text.slice(box.selectionStart));
    box.focus();
    if (isDirectory) return;
    api.post<Attached>(workspaceAddress(sid, "attach"), { path: entry.path }).then(
      ({ id, name, media_type, size }) => onAttach({ type: "file", file_id: id, name, media_type, size }),
      () => undefined, // too large, or nothing that models read: the path is in the text
    );
  };
  useListKeys(area, items.length > 0, {
    move: (step) => setActive((at + step + items.length) % items.length),
    choose: () => items[at] && choose(items[at]),
  });
  useActiveDescendant(area, items.length ? at : null);
  if (!items.length) return null;
  return (
    <div className={classNames(popover.floating, slash.list)} id={LIST_ID} role="listbox" aria-label="Files">
      {items.map((entry, n) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the message box handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the message box keeps the focus
        <div
          key={entry.path}
          id={`${LIST_ID}-${n}`}
          role="option"
          aria-selected={n === at}
          className={classNames(picker.choice, styles.choice)}
          onPointerDown={(event) => event.preventDefault()} // keeps the focus in the message box
          onClick={() => choose(entry)}
        >
          <Icon name={entry.kind === "directory" ? "folder" : "file"} />
          <span className={classNames(textStyles.ellipsis, picker.name)}>
            {escapeInvisible(nameOf(entry.path))}
            {entry.kind === "directory" && "/"}
          </span>
          <span className={classNames(picker.note, textStyles.ellipsis)}>{escapeInvisible(parentOf(entry.path))}</span>
        </div>
      ))}
    </div>
  );
}

/** The mention before the cursor, unless Escape closed the list. */
function useMention(area: RefObject<HTMLTextAreaElement | null>, text: string): Mention | null {
  const [mention, setMention] = useState<Mention | null>(null);
  const [closed, setClosed] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text opens the list again
  useEffect(() => setClosed(false), [text]);
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    const look = () => {
      const { selectionStart, selectionEnd } = box;
      const isTyping = document.activeElement === box && selectionStart === selectionEnd;
      setMention(isTyping && box.value === text ? mentionAt(text, selectionStart) : null);
    };
    const close = (event: KeyboardEvent) => {
      if (event.key === "Escape") setClosed(true);
    };
    look();
    document.addEventListener("selectionchange", look);
    box.addEventListener("blur", look);
    box.addEventListener("focus", look);
    box.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("selectionchange", look);
      box.removeEventListener("blur", look);
      box.removeEventListener("focus", look);
      box.removeEventListener("keydown", close);
    };
  }, [area, text]);
  return closed ? null : mention;
}

/** The files that match; those of the last text while others are looked for. */
function useFoundFiles(sid: string, query: string | null): readonly WorkspaceEntryResponse[] {
  const { api } = useApp();
  const [found, setFound] = useState<readonly WorkspaceEntryResponse[]>([]);
  useEffect(() => {
    if (query === null) return setFound([]);
    const request = new AbortController();
    const look = () =>
      api.get<WorkspacePathsResponse>(workspaceAddress(sid, "search", { query, limit: SHOWN }), request.signal).then(
        ({ items }) => setFound(items.filter(({ kind }) => kind !== "other")),
        () => !request.signal.aborted && setFound([]), // this chat has no files
      );
    const timer = setTimeout(look, query ? DELAY_MS : 0);
    return () => {
      clearTimeout(timer);
      request.abort();
    };
  }, [api, sid, query]);
  return found;
}

interface ListKeys {
  readonly move: (step: number) => void;
  readonly choose: () => void;
}

/** The keys of the list, before the message box sees them. */
function useListKeys(area: RefObject<HTMLTextAreaElement | null>, open: boolean, keys: ListKeys): void {
  const latest = useRef(keys);
  useLayoutEffect(() => {
    latest.current = keys;
  }, [keys]);
  useEffect(() => {
    const box = area.current;
    if (!box || !open) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step !== undefined) latest.current.move(step);
      else if (event.key === "Enter" || event.key === "Tab") latest.current.choose();
      else if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation(); // nothing is sent, and no answer is stopped
    };
    box.addEventListener("keydown", onKeyDown);
    return () => box.removeEventListener("keydown", onKeyDown);
  }, [area, open]);
}

/** Tells screen readers which choice is active, while the message box has the focus. */
function useActiveDescendant(area: RefObject<HTMLTextAreaElement | null>, active: number | null): void {
  useEffect(() => {
    const box = area.current;
    if (!box || active === null) return;
    box.setAttribute("aria-controls", LIST_ID);
    box.setAttribute("aria-activedescendant", `${LIST_ID}-${active}`);
    document.getElementById(`${LIST_ID}-${active}`)?.scrollIntoView({ block: "nearest" });
    return () => {
      box.removeAttribute("aria-controls");
      box.removeAttribute("aria-activedescendant");
    };
  }, [area, active]);
}

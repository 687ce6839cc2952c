// The message box. Typed text is kept as a draft until it is sent (`core/drafts`); what is sent and not stored yet is in
// `core/outbox`.

import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { AgentCommandResponse } from "../../core/api-types.ts";
import { NEW_CHAT, NO_DRAFT } from "../../core/drafts.ts";
import type { SendMode } from "../../core/thread.ts";
import type { FilePart } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { lazyComponent } from "../lazy-load.ts";
import { INTERRUPT_KEYS, STEER_KEYS } from "../shortcuts.ts";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { isPlainKey, isSubmitKey, sendMode } from "../widgets/keyboard.ts";
import { LazyPart } from "../widgets/LazyPart.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import promptBox from "../widgets/prompt-box.module.css";
import styles from "./Composer.module.css";
import { focusMessageBox } from "./focus.ts";
import { type SlashCommand, SlashCommandList, useSlashCommands } from "./SlashCommands.tsx";
import { useFileDrop } from "./use-file-drop.ts";
import { usePaste } from "./use-paste.ts";
import { useUploads } from "./use-uploads.ts";

const Attachments = lazyOverlay(() => import("./Attachments.tsx"));
const FileMentions = lazyOverlay(() => import("./FileMentions.tsx"));

interface Props {
  /** The key of the draft: a session id, or "new". */
  draftId: string;
  busy: boolean;
  stopping: boolean;
  /** Whether text can be added to the active answer. */
  canSteer?: boolean;
  /** Whether what is sent answers a question of the model. */
  answering?: boolean;
  /** Returns whether the message was accepted. */
  onSend: (text: string, files: readonly FilePart[], how: SendMode) => Promise<boolean> | boolean;
  onStop: () => void;
  /** Edits the message that was sent last. */
  onEditLast?: () => void;
  commands: readonly SlashCommand[];
  /** The model that will read the attachments; null: the default model. */
  modelId?: string | null;
  /** Commands of the chat's agent, which are sent as messages. */
  agentCommands?: readonly AgentCommandResponse[];
  /** Shown above the message. */
  above?: ReactNode;
  children?: ReactNode;
}

const MAX_HEIGHT = 320;
const PromptCommands = lazyComponent(() => import("./PromptCommands.tsx"));
const SharedDraft = lazyComponent(() => import("./SharedDraft.tsx"));

/** The name of the command that a text looks like: a slash and a word, then a space or nothing. */
const commandName = (text: string): string | null => /^\/([a-z][\w:.-]*)(?=\s|$)/i.exec(text)?.[1] ?? null;

/** Prompts as commands, which are loaded with the first slash. */
function usePrompts(text: string, insert: (text: string) => void) {
  const typed = text.startsWith("/");
  const [commands, setCommands] = useState<readonly SlashCommand[] | null>(null);
  if (typed && !commands) setCommands([]);
  const loader = commands && (
    <LazyPart>
      <PromptCommands typed={typed} insert={insert} onCommands={setCommands} />
    </LazyPart>
  );
  return { commands: commands ?? [], loader };
}

/** A command of the chat or its agent wins over a prompt of the same name. */
function withPrompts(commands: readonly SlashCommand[], prompts: readonly SlashCommand[]): readonly SlashCommand[] {
  const names = new Set(commands.map(({ name }) => name));
  return [...commands, ...prompts.filter(({ name }) => !names.has(name))];
}

export function Composer(props: Props) {
  const {
    draftId,
    busy,
    stopping,
    canSteer = false,
    answering = false,
    onSend,
    onStop,
    onEditLast,
    commands,
    modelId = null,
    agentCommands = [],
    above,
    children,
  } = props;
  const { drafts } = useApp();
  const [text, setText] = useState(() => drafts.read(draftId).text);
  const uploads = useUploads(() => drafts.read(draftId).files);
  const draggedOver = useFileDrop(uploads.add);
  const area = useRef<HTMLTextAreaElement>(null);
  const onPaste = usePaste(area, uploads);
  const fileInput = useRef<HTMLInputElement>(null);
  const prompts = usePrompts(text, setText);
  const own = new Set(commands.map(({ name }) => name));
  const agents = agentCommands
    .filter(({ name }) => !own.has(name))
    .map(({ name, description, hint }) => ({
      name,
      description: hint ? `${description} (${hint})` : description,
      run: () => (hint === null ? void submit(`/${name}`) : setText(`/${name} `)),
    }));
  const known = withPrompts([...commands, ...agents], prompts.commands);
  const slash = useSlashCommands(text, known, () => setText(""));
  const [unknown, setUnknown] = useState<string | null>(null);
  const { files, replace } = uploads;

  useEffect(() => drafts.write(draftId, { text, files }), [drafts, draftId, text, files]);
  useEffect(
    () =>
      drafts.onAppend(draftId, (draft) => {
        setText(draft.text);
        replace(draft.files);
      }),
    [drafts, draftId, replace],
  );
  useEffect(() => {
    focusMessageBox();
  }, []);
  // Escape stops also while nothing has the focus, as after a click on a button that is gone.
  useEffect(() => {
    if (!busy) return;
    const onEscape = (event: globalThis.KeyboardEvent) => {
      // The target, not the focus: a handler may have closed what had the focus.
      const unfocused = event.target === document.body && !document.querySelector("dialog[open], :popover-open");
      if (event.key === "Escape" && unfocused) onStop();
    };
    addEventListener("keydown", onEscape);
    return () => removeEventListener("keydown", onEscape);
  }, [busy, onStop]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the text
  useLayoutEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, MAX_HEIGHT)}px`;
  }, [text]);

  const ready = (text.trim() !== "" || files.length > 0) && !uploads.busy;
  const steerable = canSteer && !files.length && !answering;
  const send = async (asMessage = false, how: SendMode = "queue") => {
    const command = slash.found[slash.active];
    if (command) return slash.run(command);
    if (!ready) return;
    const typed = asMessage ? null : commandName(text);
    const unknown = agents.some(({ name }) => name === typed) ? null : typed;
    setUnknown(unknown);
    if (unknown === null) await submit(text, how);
  };
  const submit = async (message: string, how: SendMode = "queue") => {
    setText("");
    uploads.clear();
    drafts.write(draftId, NO_DRAFT); // sending may leave this screen before any effect runs
    focusMessageBox();
    if (await onSend(message, files, how)) return;
    setText((typed) => typed || message);
    uploads.restore(files);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (slash.onKeyDown(event)) return;
    const how = busy ? sendMode(event, steerable) : null;
    if (how !== null || isSubmitKey(event)) {
      event.preventDefault();
      void send(false, how ?? "queue");
    } else if (event.key === "ArrowUp" && onEditLast && !text && !files.length && isPlainKey(event)) {
      event.preventDefault();
      onEditLast();
    } else if (event.key === "Escape" && busy && !event.nativeEvent.isComposing) onStop();
  };
  const stop = () => {
    focusMessageBox(); // the button is about to go
    onStop();
  };
  return (
    <>
      <form
        className={classNames(promptBox.box, styles.composer, draggedOver && styles.draggedOver)}
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {draggedOver && <p className={styles.dropHint}>Drop files here</p>}
        <SlashCommandList {...slash} />
        {unknown !== null && (
          <p className={styles.hint} role="alert">
            {known.some(({ name }) => name === unknown.toLowerCase())
              ? `/${unknown} takes no arguments`
              : `Unknown command: /${unknown}`}
            <Button small onClick={() => void send(true)}>
              Send as message
            </Button>
          </p>
        )}
        <LazyPart>
          <SharedDraft draftId={draftId} value={text} onChange={setText} />
        </LazyPart>
        {above}
        {(files.length > 0 || uploads.pending.length > 0) && <Attachments uploads={uploads} modelId={modelId} />}
        {draftId !== NEW_CHAT && text.includes("@") && (
          <FileMentions sid={draftId} area={area} text={text} onText={setText} onAttach={uploads.attach} />
        )}
        <textarea
          ref={area}
          data-message-box
          aria-label="Message"
          placeholder={answering ? "Answer the question" : busy ? "Queue a follow-up" : "Ask anything"}
          rows={1}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setUnknown(null);
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {busy && ready && (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
          <div className={styles.modes} role="group" aria-label="While answering">
            {steerable && (
              <Button
                small
                title={`The model reads it at its next step (${STEER_KEYS.join("+")})`}
                onClick={() => void send(false, "steer")}
              >
                Add to answer
              </Button>
            )}
            <Button
              small
              title={`Stops the answer, then sends (${INTERRUPT_KEYS.join("+")})`}
              onClick={() => void send(false, "interrupt")}
            >
              Stop and send
            </Button>
          </div>
        )}
        <div className={classNames(promptBox.bar, styles.bar)}>
          <IconButton name="Attach files" icon="clip" onClick={() => fileInput.current?.click()} />
          <input
            ref={fileInput}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              uploads.add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          {children}
          <span className={styles.spacer} />
          {busy && <IconButton name="Stop" icon="stop" className={styles.stop} onClick={stop} disabled={stopping} />}
          {(!busy || ready) && (
            <IconButton name="Send" icon="send" type="submit" className={styles.send} disabled={!ready} />
          )}
        </div>
      </form>
      {prompts.loader}
    </>
  );
}

// Finds text in the shown chat. Without a text it lists the questions: the outline of the chat.

import { type KeyboardEvent, memo, useCallback, useEffect, useId, useRef, useState } from "react";
import { ChatOutline, type MessageExcerpt } from "../../core/chat-outline.ts";
import { startNearMatch, wordPattern } from "../../core/search.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount, formatTime } from "../format.ts";
import { navigate } from "../router.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import styles from "./FindPanel.module.css";
import { closeFind, FIND_FIELD, findQuery } from "./find-state.ts";
import { focusMessageBox } from "./focus.ts";

const DELAY_MS = 200;
const MIN_LENGTH = 2;

export default function FindPanel({ sid }: { sid: string }) {
  const { api } = useApp();
  const [outline] = useState(() => new ChatOutline(api, sid));
  const { query, items, loading, failed } = useStore(outline.state);
  const [typed, setTyped] = useState("");
  const [active, setActive] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const list = useId();
  const wanted = typed.trim().length < MIN_LENGTH ? "" : typed.trim();
  useEffect(() => {
    const timer = setTimeout(
      () => {
        setActive(null);
        findQuery.set(wanted);
        void outline.load(wanted);
      },
      wanted ? DELAY_MS : 0,
    );
    return () => clearTimeout(timer);
  }, [outline, wanted]);
  useEffect(() => {
    field.current?.focus();
    return () => {
      outline.close();
      findQuery.set("");
    };
  }, [outline]);
  const close = () => {
    closeFind();
    focusMessageBox();
  };
  const show = useCallback(
    (id: string) => {
      setActive(id);
      document.getElementById(list + id)?.scrollIntoView({ block: "nearest" });
      navigate(`/c/${sid}#${id}`, true);
    },
    [list, sid],
  );
  const at = items.findIndex(({ id }) => id === active);
  /** From the newest on, and around the ends. */
  const step = (by: 1 | -1) => {
    const to = items.at(at < 0 ? (by < 0 ? -1 : 0) : (at + by) % items.length);
    if (to) show(to.id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Enter") step(event.shiftKey ? 1 : -1);
    else return;
    event.preventDefault();
  };
  const total = `${formatCount(items.length)}${loading ? "…" : ""} ${items.length === 1 ? "message" : "messages"}`;
  const found = at < 0 ? total : `${formatCount(at + 1)} of ${total}`;
  const status = query ? (items.length || loading ? found : "No matches") : "";
  return (
    <search className={classNames(popover.floating, styles.panel)} aria-label="Find in chat">
      <div className={styles.bar}>
        <input
          ref={field}
          id={FIND_FIELD}
          type="search"
          role="combobox"
          aria-label="Find in chat"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={at < 0 ? undefined : list + active}
          placeholder="Find in chat"
          autoComplete="off"
          maxLength={200}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <span className={text.quiet} role="status">
          {failed ? "Could not load" : status}
        </span>
        <IconButton name="Previous message" icon="up" disabled={!items.length} onClick={() => step(-1)} />
        <IconButton name="Next message" icon="down" disabled={!items.length} onClick={() => step(1)} />
        <IconButton name="Close" icon="close" onClick={close} />
      </div>
      <div
        id={list}
        className={styles.list}
        role="listbox"
        aria-label={query ? "Matches" : "Your messages"}
        tabIndex={-1}
      >
        {items.map((item) => (
          <Item key={item.id} id={list + item.id} item={item} query={query} active={item.id === active} onShow={show} />
        ))}
      </div>
    </search>
  );
}

interface OutlineItemProps {
  id: string;
  item: MessageExcerpt;
  query: string;
  active: boolean;
  onShow: (id: string) => void;
}

const Item = memo(function Item({ id, item, query, active, onShow }: OutlineItemProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
    <div
      id={id}
      role="option"
      aria-selected={active}
      tabIndex={-1}
      className={classNames(styles.item, active && styles.active)}
      onClick={() => onShow(item.id)}
    >
      <span className={styles.text} dir="auto">
        {query && <span className={text.quiet}>{item.role === "user" ? "You: " : "Answer: "}</span>}
        <Marked content={item.text} query={query} />
      </span>
      <time className={text.quiet} dateTime={item.created_at}>
        {formatTime(item.created_at)}
      </time>
    </div>
  );
});

/** The text with what was searched for highlighted. */
function Marked({ content, query }: { content: string; query: string }) {
  const pattern = query ? wordPattern([query]) : null;
  if (!pattern) return content || "Message without text";
  return startNearMatch(content, [query])
    .split(pattern)
    .map((piece, n) =>
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
      n % 2 ? <mark key={n}>{piece}</mark> : piece,
    );
}

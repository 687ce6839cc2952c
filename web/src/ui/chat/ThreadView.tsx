// The messages of a session, newest at the bottom. The view sticks to the bottom while text grows there, unless the
// user scrolled away; older pages load above without moving what is being read.

import {
  Fragment,
  type MouseEvent,
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { UNREACHABLE } from "../../core/api.ts";
import type { Outgoing } from "../../core/outbox.ts";
import { searchWords } from "../../core/search.ts";
import type { Thread, ThreadMessage, ThreadState } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { MarkdownText } from "../markdown/MarkdownText.tsx";
import { useTarget } from "../router.tsx";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { InlineCode } from "../widgets/InlineCode.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import { Chunk, toChunks, useExpanded, VisibilityObserver } from "../widgets/VirtualList.tsx";
import { AnswerAnnouncer } from "./AnswerAnnouncer.tsx";
import { CONVERSATION } from "./conversation.ts";
import { editRequest } from "./edit-request.ts";
import { findQuery } from "./find-state.ts";
import { hasNotice, MessageView } from "./Message.tsx";
import { OutgoingMessage } from "./OutgoingMessage.tsx";
import { clearHighlight, highlightWords } from "./search-highlight.ts";
import styles from "./ThreadView.module.css";
import { redoTurn } from "./turn-actions.ts";

/** Within this distance in pixels the view sticks to the bottom. */
const STICKY_DISTANCE = 80;
const CHUNK_SIZE = 12;
/** How long the words of a search in the list stay highlighted. */
const HIGHLIGHT_MS = 6000;
/** How far outside the viewport messages stay rendered. */
const RENDER_MARGIN = 2000;

type ThreadProps = { thread: Thread; state: ThreadState };

export function ThreadView({ thread, state }: ThreadProps) {
  const app = useApp();
  const outgoing = useStore(app.outbox.state).filter((item) => item.sid === state.sid);
  const { agents } = useStore(app.catalog);
  const { session, messages } = state;
  const canContinue = agents.find((agent) => agent.name === session?.agent)?.can_continue ?? true;
  const scroll = useStickyScroll(state, outgoing);
  const [observer] = useState(() => new VisibilityObserver(RENDER_MARGIN));
  const anchor = useAnchorIndex(messages);
  const { revealed, searching, showVersion } = useMessageInAddress(thread, state, scroll);
  const edited = useStore(editRequest);
  const required = (message: ThreadMessage) => message.id === revealed || message.id === edited;

  return (
    <section
      className={styles.scroll}
      data-scroll-container
      ref={scroll.box}
      onScroll={scroll.onScroll}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      aria-label="Conversation"
      {...CONVERSATION}
    >
      <div className={styles.thread} ref={scroll.content} onClickCapture={scroll.onClick}>
        {searching && (
          <p className={styles.searching} role="status">
            Looking for the message…
          </p>
        )}
        {showVersion && (
          <p className={styles.searching} role="status">
            Found in another version{" "}
            <Button small onClick={showVersion}>
              Show
            </Button>
          </p>
        )}
        {state.older !== null && <OlderMessages thread={thread} box={scroll.box} state={state} />}
        {!state.loaded && !outgoing.length && <Loading thread={thread} problem={state.unloaded} />}
        {toChunks(messages, CHUNK_SIZE, anchor).map(({ key, items }) => (
          <MessageChunk
            key={key}
            messages={items}
            thread={thread}
            observer={observer}
            busy={session?.active_run != null}
            canContinue={canContinue}
            last={messages.at(-1)?.id}
            always={items.some(required)}
          />
        ))}
        {state.loaded && !messages.length && !outgoing.length && (
          <p className={styles.empty}>
            {session?.can_redo ? "All messages were undone" : "No messages yet"}
            {session?.can_redo && <Button onClick={() => void redoTurn(thread)}>Redo</Button>}
          </p>
        )}
        {outgoing.map((item) => (
          <OutgoingMessage key={item.key} item={item} />
        ))}
      </div>
      <AnswerAnnouncer messages={messages} />
      {!scroll.stuck && (
        <div className={styles.toBottom}>
          <IconButton name="Scroll to bottom" icon="down" onClick={scroll.toBottom} />
        </div>
      )}
    </section>
  );
}

/** Stands for a chat that is not there yet. One that could not be loaded is loaded when the server is back. */
function Loading({ thread, problem }: { thread: Thread; problem: string | null }) {
  if (problem === null) return <Spinner name="Loading messages" />;
  const lost = problem === UNREACHABLE;
  return (
    <div className={styles.empty} role="status">
      <p>
        <InlineCode text={lost ? "Can’t reach the server. This chat is shown when the connection is back." : problem} />
      </p>
      <Button onClick={() => void thread.refresh()}>Try again</Button>
    </div>
  );
}

/** Returns the index of a message that stays the anchor for chunking while it is in the thread. */
function useAnchorIndex(messages: readonly ThreadMessage[]): number {
  const first = messages[0]?.id;
  const [anchor, setAnchor] = useState(first);
  const index = messages.findIndex((message) => message.id === anchor);
  if (index < 0 && anchor !== first) setAnchor(first);
  return Math.max(0, index);
}

interface MessageChunkProps {
  messages: readonly ThreadMessage[];
  thread: Thread;
  observer: VisibilityObserver;
  busy: boolean;
  canContinue: boolean;
  last: string | undefined;
  /** Whether it is rendered wherever it is: the address names one of its messages, or one is about to be edited. */
  always: boolean;
}

const MessageChunk = memo(
  function MessageChunk({ messages, thread, observer, busy, canContinue, last, always }: MessageChunkProps) {
    return (
      <Chunk observer={observer} className={styles.chunk} always={always}>
        {() =>
          messages.map((message) => (
            <Fragment key={message.id}>
              <MessageView
                message={message}
                thread={thread}
                busy={busy && message.role === "assistant" && hasNotice(message)} // only notices use it
                canContinue={canContinue}
                last={message.id === last}
              />
              {message.summary !== null && <SummaryDivider message={message} summary={message.summary} />}
            </Fragment>
          ))
        }
      </Chunk>
    );
  },
  (a, b) =>
    a.messages.length === b.messages.length &&
    a.messages.every((message, n) => message === b.messages[n]) &&
    a.thread === b.thread &&
    a.busy === b.busy &&
    a.canContinue === b.canContinue &&
    a.last === b.last &&
    a.always === b.always,
);

/** Where models are shown a summary instead of the messages above. */
function SummaryDivider({ message, summary }: { message: ThreadMessage; summary: string }) {
  const [choice, setExpanded] = useExpanded(message);
  const expanded = choice ?? false;
  return (
    <section className={styles.summary} aria-label="Summarized messages">
      <p className={styles.divider}>
        <span>
          Earlier messages were summarized to save context{" "}
          <Button small aria-expanded={expanded} onClick={() => setExpanded(!expanded)}>
            {expanded ? "Hide summary" : "Show summary"}
          </Button>
        </span>
      </p>
      {expanded && (
        <div className={styles.summaryText}>
          <MarkdownText text={summary} growing={false} />
        </div>
      )}
    </section>
  );
}

const isNearBottom = (area: Element) => area.scrollHeight - area.scrollTop - area.clientHeight < STICKY_DISTANCE;

function useStickyScroll(state: ThreadState, outgoing: readonly Outgoing[]) {
  const box = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [stuck, setStuck] = useState(true);
  const stuckNow = useRef(true); // read by observers between renders
  const previousTop = useRef(0);
  const toggled = useRef(false); // a card is being expanded or collapsed

  const stick = useCallback((to: boolean) => {
    stuckNow.current = to;
    setStuck(to);
  }, []);
  const toBottom = useCallback(() => {
    stick(true);
    const area = box.current;
    if (area) area.scrollTop = area.scrollHeight;
  }, [stick]);
  const onScroll = useCallback(() => {
    const area = box.current;
    if (!area) return;
    // Browsers do not anchor at the very top: what is read would jump when older messages load above it.
    if (area.scrollTop < 1 && area.scrollHeight > area.clientHeight) area.scrollTop = 1;
    const movedUp = area.scrollTop < previousTop.current - 1;
    previousTop.current = area.scrollTop;
    if (isNearBottom(area)) stick(true);
    else if (movedUp) stick(false); // growth alone never moves up
  }, [stick]);

  useEffect(() => {
    const [area, inner] = [box.current, content.current];
    if (!area || !inner) return;
    const observer = new ResizeObserver(() => {
      if (toggled.current) stick(isNearBottom(area)); // the header that was clicked stays in place
      toggled.current = false;
      if (stuckNow.current) area.scrollTop = area.scrollHeight;
    });
    observer.observe(inner);
    observer.observe(area);
    return () => observer.disconnect();
  }, [stick]);

  const lastSent = outgoing.at(-1)?.key;
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the session changes or a message is sent
  useLayoutEffect(() => {
    toBottom();
  }, [state.sid, lastSent, toBottom]);
  const release = useCallback(() => stick(false), [stick]);
  const onClick = useCallback(({ target }: MouseEvent) => {
    if (target instanceof Element && target.closest("[aria-expanded], summary")) toggled.current = true;
  }, []);
  return { box, content, stuck, onScroll, onClick, toBottom, release };
}

/** Scrolls to the message that the address names, as links from the search do. Returns its id while it is there. */
function useMessageInAddress(thread: Thread, { loaded }: ThreadState, scroll: ReturnType<typeof useStickyScroll>) {
  const target = useTarget();
  const [revealed, setRevealed] = useState<{ id: string } | null>(null);
  const [searching, setSearching] = useState(false);
  const [elsewhere, setElsewhere] = useState<string | null>(null);
  const { sessions } = useApp();
  const { box, release } = scroll;
  useEffect(() => {
    const id = target.hash.slice(1);
    let outdated = false;
    setRevealed(null);
    setElsewhere(null);
    if (!loaded || !id.startsWith("msg_")) return;
    setSearching(true);
    void thread.find(id).then((found) => {
      if (outdated) return;
      setSearching(false);
      if (found) setRevealed({ id });
      else setElsewhere(id);
    });
    return () => {
      outdated = true;
      setSearching(false);
    };
  }, [thread, target, loaded]);
  useEffect(() => {
    const message = revealed && box.current?.querySelector(`article[data-id="${CSS.escape(revealed.id)}"]`);
    if (!message) return;
    release();
    const sought = findQuery.get();
    const words = sought ? [sought] : searchWords(sessions.state.get().query);
    const found = highlightWords(message, words);
    (found ?? message).scrollIntoView({ block: "center" });
    message.classList.add(styles.revealed ?? "");
    // Of the panel until it searches for something else or is closed; of the list for as long as it takes to see it.
    const timer = sought ? undefined : setTimeout(clearHighlight, HIGHLIGHT_MS);
    const unsubscribe = findQuery.subscribe(clearHighlight);
    return () => {
      clearTimeout(timer);
      unsubscribe();
      clearHighlight();
    };
  }, [revealed, box, release, sessions]);
  const showVersion = async (id: string) => {
    setElsewhere(null);
    if ((await thread.switchBranch(id)) && (await thread.find(id))) setRevealed({ id });
  };
  return {
    revealed: revealed?.id ?? null,
    searching,
    /** Switches to the version of the chat that has the message, if it is not the shown one. */
    showVersion: elsewhere === null ? null : () => void showVersion(elsewhere),
  };
}

/** Loads the next older page when it comes near the viewport, unless the last attempt failed. */
function OlderMessages({ thread, box, state }: ThreadProps & { box: RefObject<HTMLElement | null> }) {
  const { loadingOlder: loading, olderFailed: failed } = state;
  const marker = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!marker.current || loading || failed) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) void thread.loadOlder();
      },
      { root: box.current, rootMargin: "600px 0px 0px 0px" },
    );
    observer.observe(marker.current);
    return () => observer.disconnect();
  }, [thread, box, loading, failed]);
  return (
    <div ref={marker} className={styles.older}>
      <Button onClick={() => void thread.loadOlder()} disabled={loading}>
        {loading ? "Loading…" : "Load earlier messages"}
      </Button>
    </div>
  );
}

// The messages of a session, newest at the bottom. It stays at the bottom while text grows there, unless somebody
// scrolled away; older pages come in above without moving what is read.

import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Outgoing } from "../core/outbox.ts";
import type { Shown, Thread, ThreadState } from "../core/thread.ts";
import { useApp, useStore } from "./context.ts";
import { MessageView } from "./Message.tsx";
import { OutgoingView } from "./OutgoingView.tsx";
import { IconButton, Spinner } from "./widgets.tsx";
import { Nearness, Piece, pieces } from "./windowing.tsx";

const NEAR = 80;
const PIECE = 12;
/** How far outside of the window messages are kept in the page. */
const MARGIN = 2000;

export function ThreadView({ thread, state }: { thread: Thread; state: ThreadState }) {
  const app = useApp();
  const outgoing = useStore(app.outbox.state).filter((item) => item.sid === state.sid);
  const { agents } = useStore(app.catalogue);
  const { session, messages } = state;
  const busy = session?.active_run != null;
  const canContinue = agents.find((agent) => agent.name === session?.agent)?.can_continue ?? true;
  const scroll = useSticky(state, outgoing);
  const [nearness] = useState(() => new Nearness(".scroll", MARGIN));
  const cut = pieces(messages, PIECE, useFixed(messages));

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
    <section className="scroll" ref={scroll.box} onScroll={scroll.onScroll} tabIndex={0} aria-label="Conversation">
      <div className="thread" ref={scroll.content}>
        {state.older !== null && <Older thread={thread} box={scroll.box} loading={state.loadingOlder} />}
        {!state.loaded && <Spinner name="Loading the conversation" />}
        {cut.map(({ key, items }) => (
          <Messages
            key={key}
            messages={items}
            thread={thread}
            nearness={nearness}
            busy={busy}
            canContinue={canContinue}
            last={messages.at(-1)?.id}
          />
        ))}
        {outgoing.map((item) => (
          <OutgoingView key={item.key} item={item} outbox={app.outbox} />
        ))}
      </div>
      {!scroll.stuck && (
        <div className="to-latest">
          <IconButton name="Jump to latest" icon="down" onClick={scroll.toLatest} />
        </div>
      )}
    </section>
  );
}

/** Where the message is now by which pieces are counted: one that was there first, as long as it is shown. */
function useFixed(messages: readonly Shown[]): number {
  const fixed = useRef<string | undefined>(undefined);
  const at = messages.findIndex((message) => message.id === fixed.current);
  if (at >= 0) return at;
  fixed.current = messages[0]?.id;
  return 0;
}

interface MessagesProps {
  messages: readonly Shown[];
  thread: Thread;
  nearness: Nearness;
  busy: boolean;
  canContinue: boolean;
  last: string | undefined;
}

/** A few messages that follow each other, in the page while they are near the window. */
const Messages = memo(
  function Messages({ messages, thread, nearness, busy, canContinue, last }: MessagesProps) {
    return (
      <Piece nearness={nearness}>
        {() =>
          messages.map((message) => (
            <MessageView
              key={message.id}
              message={message}
              thread={thread}
              busy={busy && message.role === "assistant" && message.status !== "complete"} // only a notice asks
              canContinue={canContinue}
              last={message.id === last}
            />
          ))
        }
      </Piece>
    );
  },
  (a, b) =>
    a.messages.length === b.messages.length &&
    a.messages.every((message, n) => message === b.messages[n]) &&
    a.thread === b.thread &&
    a.busy === b.busy &&
    a.canContinue === b.canContinue &&
    a.last === b.last,
);

function useSticky(state: ThreadState, outgoing: readonly Outgoing[]) {
  const box = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [stuck, setStuck] = useState(true);
  const now = useRef(true);
  const before = useRef(0);

  const stick = useCallback((to: boolean) => {
    now.current = to;
    setStuck(to);
  }, []);
  const toLatest = useCallback(() => {
    stick(true);
    const area = box.current;
    if (area) area.scrollTop = area.scrollHeight;
  }, [stick]);
  const onScroll = useCallback(() => {
    const area = box.current;
    if (!area) return;
    // At the very top browsers anchor nothing, and what is read would jump when older messages come in above it.
    if (area.scrollTop < 1 && area.scrollHeight > area.clientHeight) area.scrollTop = 1;
    const up = area.scrollTop < before.current - 1;
    before.current = area.scrollTop;
    const near = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR;
    if (near) stick(true);
    else if (up) stick(false); // growth alone moves nothing up
  }, [stick]);

  useEffect(() => {
    const [area, inner] = [box.current, content.current];
    if (!area || !inner) return;
    const follow = new ResizeObserver(() => {
      if (now.current) area.scrollTop = area.scrollHeight;
    });
    follow.observe(inner);
    follow.observe(area);
    return () => follow.disconnect();
  }, []);

  // Another session, or something sent from here: go to the bottom.
  const sent = outgoing.at(-1)?.key;
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are what it is about
  useLayoutEffect(() => {
    toLatest();
  }, [state.sid, sent, toLatest]);
  return { box, content, stuck, onScroll, toLatest };
}

interface OlderProps {
  thread: Thread;
  box: React.RefObject<HTMLElement | null>;
  loading: boolean;
}

/** Older messages are read when their place comes near. */
function Older({ thread, box, loading }: OlderProps) {
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!mark.current || loading) return;
    const seen = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) void thread.loadOlder();
      },
      { root: box.current, rootMargin: "600px 0px 0px 0px" },
    );
    seen.observe(mark.current);
    return () => seen.disconnect();
  }, [thread, box, loading]);
  return (
    <div ref={mark} className="older">
      <button type="button" className="button" onClick={() => void thread.loadOlder()} disabled={loading}>
        {loading ? "Loading…" : "Earlier messages"}
      </button>
    </div>
  );
}

// All conversations: pinned first, then by age; those that are working have a dot.

import { memo, useEffect, useMemo, useRef, useState } from "react";
import type { Session } from "../core/wire.ts";
import { SessionMenu, SourceBadge } from "./ChatHead.tsx";
import { useApp, useStore } from "./context.ts";
import { ageGroup } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Link, navigate, usePath } from "./router.tsx";
import { sidebarOpen } from "./shell.ts";
import { IconButton } from "./widgets.tsx";
import { Nearness, Piece, pieces } from "./windowing.tsx";

const PIECE = 25;

const PLACES: readonly (readonly [string, string, IconName])[] = [
  ["/compare", "Compare", "compare"],
  ["/activity", "Activity", "activity"],
  ["/settings", "Settings", "gear"],
];

export function Sidebar({ inert }: { inert: boolean }) {
  const app = useApp();
  const state = useStore(app.sessions.state);
  const path = usePath();
  const open = useStore(sidebarOpen);
  const shown = state.found ?? state.items;
  const close = () => sidebarOpen.set(false);
  return (
    <nav className={open ? "sidebar open" : "sidebar"} aria-label="Sessions" inert={inert}>
      <div className="sidebar-top">
        <Link href="/" className="brand" onClick={close}>
          <img src="/static/icon.svg" alt="" width="26" height="26" />
          Holdfast
        </Link>
        <IconButton name="Close sessions" icon="close" className="only-narrow" onClick={close} />
      </div>
      <NewChatButton close={close} />
      <SearchBox />
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: closes the drawer when a link in it was followed */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the links in it are what is used */}
      <div className="sidebar-list" onClick={(event) => (event.target as Element).closest("a") && close()}>
        <Groups sessions={shown} path={path} searching={state.found !== null} />
        {state.loaded && !shown.length && (
          <p className="quiet pad">
            {state.found ? "Nothing found." : state.archived ? "The archive is empty." : "No chats yet."}
          </p>
        )}
        {!state.found && state.next !== null && <More />}
      </div>
      <div className="sidebar-foot">
        {PLACES.map(([href, name, icon]) => (
          <Link
            key={href}
            href={href}
            className="place"
            aria-current={path === href ? "page" : undefined}
            onClick={close}
          >
            <Icon name={icon} />
            {name}
          </Link>
        ))}
        <button
          type="button"
          className="place"
          aria-pressed={state.archived}
          onClick={() => app.sessions.showArchived(!state.archived)}
        >
          <Icon name="archive" />
          Archive
        </button>
      </div>
    </nav>
  );
}

function NewChatButton({ close }: { close: () => void }) {
  return (
    <button
      type="button"
      className="new-chat"
      onClick={() => {
        close();
        navigate("/");
      }}
    >
      <Icon name="plus" />
      New chat
    </button>
  );
}

function SearchBox() {
  const { sessions } = useApp();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <search className="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search chats"
        placeholder="Search"
        onChange={(event) => {
          const { value } = event.target;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => void sessions.search(value), 150);
        }}
      />
    </search>
  );
}

interface GroupsProps {
  sessions: readonly Session[];
  path: string;
  searching: boolean;
}

function Groups({ sessions, path, searching }: GroupsProps) {
  const [nearness] = useState(() => new Nearness(".sidebar-list", 600));
  const groups = useMemo(() => grouped(sessions, searching), [sessions, searching]);
  return [...groups].map(([name, items]) => (
    <section key={name} aria-label={name} className="group">
      <h2>{name}</h2>
      {pieces(items, PIECE).map((piece) => (
        <Piece key={piece.key} nearness={nearness} as="ul">
          {() =>
            piece.items.map((session) => <Row key={session.id} session={session} here={path === `/c/${session.id}`} />)
          }
        </Piece>
      ))}
    </section>
  ));
}

/** Pinned first, then projects by name, then the rest by age; what was found in the order in which it was found. */
function grouped(sessions: readonly Session[], searching: boolean): Map<string, Session[]> {
  const inProject = (session: Session) => !session.pinned && session.project !== null;
  const byProject = (a: Session, b: Session) =>
    String(a.project).localeCompare(String(b.project)) || b.updated_at.localeCompare(a.updated_at);
  const ordered = searching
    ? sessions
    : [
        ...sessions.filter((session) => session.pinned),
        ...sessions.filter(inProject).sort(byProject),
        ...sessions.filter((session) => !session.pinned && !inProject(session)),
      ];
  const groups = new Map<string, Session[]>();
  for (const session of ordered) {
    const name = groupOf(session, searching);
    const group = groups.get(name);
    if (group) group.push(session);
    else groups.set(name, [session]);
  }
  return groups;
}

function groupOf(session: Session, searching: boolean): string {
  if (searching) return "Found";
  if (session.pinned) return "Pinned";
  return session.project ?? ageGroup(session.updated_at);
}

const Row = memo(function Row({ session, here }: { session: Session; here: boolean }) {
  return (
    <li className={here ? "session here" : "session"}>
      <Link href={`/c/${session.id}`} aria-current={here ? "page" : undefined}>
        <span className="session-title">
          <Marked text={session.title || "Untitled chat"} />
        </span>
        <SourceBadge session={session} />
        {session.match?.excerpt && (
          <span className="excerpt">
            <Marked text={session.match.excerpt} />
          </span>
        )}
        {session.tags.length > 0 && (
          <span className="session-tags">{session.tags.map((tag) => `#${tag}`).join(" ")}</span>
        )}
      </Link>
      {session.active_run && <span className="live-dot" role="img" aria-label="Working" />}
      <SessionMenu session={session} />
    </li>
  );
});

/** Text with the words that are being looked for marked. */
function Marked({ text }: { text: string }) {
  const { query, found } = useStore(useApp().sessions.state);
  const words = (found ? query : "")
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replace(/[^\p{L}\p{N}]/gu, "\\$&"));
  if (!words.length) return text;
  return text.split(new RegExp(`(${words.join("|")})`, "gi")).map((piece, n) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text
    n % 2 ? <mark key={n}>{piece}</mark> : piece,
  );
}

function More() {
  const { sessions } = useApp();
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!mark.current) return;
    const seen = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void sessions.more();
    });
    seen.observe(mark.current);
    return () => seen.disconnect();
  });
  return <div ref={mark} className="more-mark" />;
}

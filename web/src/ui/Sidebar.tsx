// All conversations: pinned first, then by age; those that are working have a dot.

import { useEffect, useMemo, useRef } from "react";
import type { Session } from "../core/wire.ts";
import { SessionMenu, SourceBadge } from "./ChatHead.tsx";
import { useApp, useStore } from "./context.ts";
import { ageGroup } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Link, navigate, usePath } from "./router.tsx";
import { sidebarOpen } from "./shell.ts";
import { IconButton } from "./widgets.tsx";

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

function Groups({ sessions, path, searching }: { sessions: readonly Session[]; path: string; searching: boolean }) {
  const groups = useMemo(() => {
    const byName = new Map<string, Session[]>();
    const inProject = (session: Session) => !session.pinned && session.project !== null && !searching;
    // Pinned first, then projects by name, then the rest by age.
    const ordered = searching
      ? sessions
      : [
          ...sessions.filter((session) => session.pinned),
          ...sessions
            .filter(inProject)
            .sort(
              (a, b) => String(a.project).localeCompare(String(b.project)) || b.updated_at.localeCompare(a.updated_at),
            ),
          ...sessions.filter((session) => !session.pinned && !inProject(session)),
        ];
    for (const session of ordered) {
      const name = groupOf(session, searching);
      byName.set(name, [...(byName.get(name) ?? []), session]);
    }
    return [...byName];
  }, [sessions, searching]);
  return groups.map(([name, items]) => (
    <section key={name} aria-label={name} className="group">
      <h2>{name}</h2>
      <ul>
        {items.map((session) => (
          <Row key={session.id} session={session} here={path === `/c/${session.id}`} />
        ))}
      </ul>
    </section>
  ));
}

function groupOf(session: Session, searching: boolean): string {
  if (searching) return "Found";
  if (session.pinned) return "Pinned";
  return session.project ?? ageGroup(session.updated_at);
}

function Row({ session, here }: { session: Session; here: boolean }) {
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
}

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

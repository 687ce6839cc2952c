// The list of chats: pinned first, then by project and age. Running chats have a dot.

import { memo, useEffect, useMemo, useRef, useState } from "react";
import { searchWords, startNearMatch, wordPattern } from "../../core/search.ts";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { ageGroup } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { chatAddress, Link, navigate, usePath } from "../router.tsx";
import { IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon, type IconName } from "../widgets/icons.tsx";
import { PulseDot } from "../widgets/PulseDot.tsx";
import text from "../widgets/text.module.css";
import { Chunk, toChunks, VisibilityObserver } from "../widgets/VirtualList.tsx";
import { SessionMenu } from "./SessionMenu.tsx";
import styles from "./Sidebar.module.css";
import { SourceBadge } from "./SourceBadge.tsx";
import { closeSidebar, sidebarOpen } from "./sidebar-state.ts";

const CHUNK_SIZE = 25;
const RENDER_MARGIN = 600;
const SEARCH_DELAY_MS = 150;

const SCREENS: readonly (readonly [string, string, IconName])[] = [
  ["/compare", "Compare", "compare"],
  ["/activity", "Activity", "activity"],
  ["/settings", "Settings", "gear"],
];

export function Sidebar({ inert }: { inert: boolean }) {
  const { sessions } = useApp();
  const state = useStore(sessions.state);
  const path = usePath();
  const open = useStore(sidebarOpen);
  const shown = state.results ?? state.items;
  const nextPage = state.results ? state.nextResults : state.next;
  return (
    <nav className={classNames(styles.sidebar, open && styles.open)} aria-label="Chats" inert={inert}>
      <div className={styles.top}>
        <Link href="/" className={styles.brand} onClick={closeSidebar}>
          <img src={withRoot("/static/icon.svg")} alt="" width="26" height="26" />
          Holdfast
        </Link>
        <IconButton name="Close sidebar" icon="close" className={text.onlyNarrow} onClick={closeSidebar} />
      </div>
      <button
        type="button"
        className={styles.newChat}
        onClick={() => {
          closeSidebar();
          navigate("/");
        }}
      >
        <Icon name="plus" />
        New chat
      </button>
      <SearchBox />
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: closes the drawer after a click on a link in it */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the links are the interactive elements */}
      <div
        className={styles.list}
        data-scroll-container
        onClick={(event) => event.target instanceof Element && event.target.closest("a") && closeSidebar()}
      >
        <UnsentMessages path={path} />
        {state.archived && !state.results && <h2 className={styles.listTitle}>Archived chats</h2>}
        <SessionGroups sessions={shown} path={path} searching={state.results !== null} />
        {state.loaded && !shown.length && (
          <p className={classNames(text.quiet, styles.empty)}>
            {state.results ? "No matches" : state.archived ? "No archived chats" : "No chats yet"}
          </p>
        )}
        {nextPage !== null && <LoadMore key={nextPage} />}
      </div>
      <div className={styles.bottom}>
        {SCREENS.map(([href, name, icon]) => (
          <Link
            key={href}
            href={href}
            className={styles.screenLink}
            aria-current={path === href ? "page" : undefined}
            onClick={closeSidebar}
          >
            <Icon name={icon} />
            {name}
          </Link>
        ))}
        <button
          type="button"
          className={styles.screenLink}
          aria-pressed={state.archived}
          onClick={() => sessions.showArchived(!state.archived)}
        >
          <Icon name="archive" />
          Archived
        </button>
      </div>
    </nav>
  );
}

/** Links to messages that no chat shows: of chats that could not be created yet, or were deleted. */
function UnsentMessages({ path }: { path: string }) {
  const { outbox, drafts, lostDrafts } = useApp();
  const sent = useStore(outbox.state).filter((item) => item.state !== "stored" && (!item.sid || item.problem));
  const lost = useStore(lostDrafts).map((sid) => ({ key: sid, sid, ...drafts.read(sid) }));
  const unsent = [...sent, ...lost].filter((item) => item.text || item.files.length);
  if (!unsent.length) return null;
  return (
    <section className={styles.group} aria-label="Unsent">
      <h2>Unsent</h2>
      <ul>
        {unsent.map(({ key, sid, text: content, files }, n) => {
          const href = sid ? `/c/${sid}` : `/new/${key}`;
          const first = sid === null || unsent.findIndex((item) => item.sid === sid) === n;
          const current = path === href && first; // of several messages of one chat, one row is the current page
          return (
            <li key={key} className={classNames(styles.session, current && styles.current)}>
              <Link href={href} aria-current={current ? "page" : undefined}>
                <span className={classNames(text.ellipsis, styles.title)}>{content || files[0]?.name}</span>
              </Link>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function SearchBox() {
  const { sessions } = useApp();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <search className={styles.search}>
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search chats"
        placeholder="Search chats"
        onChange={(event) => {
          const { value } = event.target;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => void sessions.search(value), SEARCH_DELAY_MS);
        }}
      />
    </search>
  );
}

interface SessionGroupsProps {
  sessions: readonly Session[];
  path: string;
  searching: boolean;
}

function SessionGroups({ sessions, path, searching }: SessionGroupsProps) {
  const [observer] = useState(() => new VisibilityObserver(RENDER_MARGIN));
  const groups = useMemo(() => groupSessions(sessions, searching), [sessions, searching]);
  return [...groups].map(([name, items]) => (
    <section key={name} aria-label={name} className={styles.group}>
      <h2>{name}</h2>
      {toChunks(items, CHUNK_SIZE).map((chunk) => (
        <Chunk key={chunk.key} observer={observer} as="ul">
          {() =>
            chunk.items.map((session) => (
              <SessionRow key={session.id} session={session} current={path === `/c/${session.id}`} />
            ))
          }
        </Chunk>
      ))}
    </section>
  ));
}

/** Pinned first, then projects by name, then the rest by age; search results keep their order. */
function groupSessions(sessions: readonly Session[], searching: boolean): Map<string, Session[]> {
  if (searching) return new Map(sessions.length ? [["Search results", [...sessions]]] : []);
  const inProject = (session: Session) => !session.pinned && session.project !== null;
  const byProject = (a: Session, b: Session) =>
    String(a.project).localeCompare(String(b.project)) || b.updated_at.localeCompare(a.updated_at);
  return Map.groupBy(
    [
      ...sessions.filter((session) => session.pinned),
      ...sessions.filter(inProject).sort(byProject),
      ...sessions.filter((session) => !session.pinned && !inProject(session)),
    ],
    (session) => (session.pinned ? "Pinned" : (session.project ?? ageGroup(session.updated_at))),
  );
}

const SessionRow = memo(function SessionRow({ session, current }: { session: Session; current: boolean }) {
  return (
    <li className={classNames(styles.session, current && styles.current)}>
      <Link href={chatAddress(session)} aria-current={current ? "page" : undefined}>
        <span className={classNames(text.ellipsis, styles.title)}>
          <Highlighted text={session.title || "Untitled chat"} />
        </span>
        <SourceBadge session={session} />
        {session.match?.excerpt && (
          <span className={styles.excerpt}>
            <Highlighted text={session.match.excerpt} excerpt />
          </span>
        )}
        {session.tags.length > 0 && (
          <span className={styles.tags}>{session.tags.map((tag) => `#${tag}`).join(" ")}</span>
        )}
      </Link>
      {session.active_run_status === "waiting" ? (
        <span className={styles.waiting} role="img" aria-label="Needs approval" title="Needs approval">
          !
        </span>
      ) : (
        session.active_run && <PulseDot name="Running" />
      )}
      <SessionMenu session={session} />
    </li>
  );
});

/** Text with the words of the search query highlighted. */
function Highlighted({ text: content, excerpt = false }: { text: string; excerpt?: boolean }) {
  const { query, results } = useStore(useApp().sessions.state);
  const words = results ? searchWords(query) : [];
  const pattern = wordPattern(words);
  if (!pattern) return content;
  return (excerpt ? startNearMatch(content, words) : content).split(pattern).map((piece, n) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
    n % 2 ? <mark key={n}>{piece}</mark> : piece,
  );
}

/** Loads the next page when it scrolls into view; mounted anew for each page. */
function LoadMore() {
  const { sessions } = useApp();
  const marker = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!marker.current) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void sessions.loadMore();
    });
    observer.observe(marker.current);
    return () => observer.disconnect();
  }, [sessions]);
  return <div ref={marker} className={styles.loadMore} />;
}

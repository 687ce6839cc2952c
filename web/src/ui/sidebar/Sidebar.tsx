// The list of chats: pinned first, then by project and age (`ageGroup` in format.ts). Running chats have a dot.

import { type KeyboardEvent, memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { searchWords, startNearMatch, wordPattern } from "../../core/search.ts";
import type { SessionListState } from "../../core/session-list.ts";
import type { Session } from "../../core/types.ts";
import { withoutMarkdown } from "../../core/without-markdown.ts";
import { useApp, useStore } from "../context.ts";
import { ageGroup, waitText } from "../format.ts";
import { openNewChat } from "../open-new-chat.ts";
import { withRoot } from "../root-path.ts";
import { chatAddress, Link, usePath } from "../router.tsx";
import { isMac, MODIFIER } from "../shortcuts.ts";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon, type IconName } from "../widgets/icons.tsx";
import { isPlainKey } from "../widgets/keyboard.ts";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import { PulseDot } from "../widgets/PulseDot.tsx";
import text from "../widgets/text.module.css";
import { Chunk, toChunks, VisibilityObserver } from "../widgets/VirtualList.tsx";
import { ChatDropTarget, dragged } from "./ChatDropTarget.tsx";
import { ProjectHeading } from "./ProjectHeading.tsx";
import { SessionMenu } from "./SessionMenu.tsx";
import styles from "./Sidebar.module.css";
import { SourceBadge } from "./SourceBadge.tsx";
import { selectedChats, stopSelecting, toggleChat } from "./selection-state.ts";
import { closeSidebar, sidebarOpen, toggleSidebar } from "./sidebar-state.ts";

const SelectionBar = lazyOverlay(() => import("./SelectionBar.tsx"), stopSelecting);

const CHUNK_SIZE = 25;
const RENDER_MARGIN = 600;
const SEARCH_DELAY_MS = 150;

/** Before the names of projects, which may be any words. */
const PROJECT = "project:";

/** More projects without a chat in the list are on their own page. */
const MAX_OTHER_PROJECTS = 20;

const SCREENS: readonly (readonly [string, string, IconName])[] = [
  ["/projects", "Projects", "project"],
  ["/compare", "Compare", "compare"],
  ["/activity", "Activity", "activity"],
  ["/settings", "Settings", "gear"],
];

export function Sidebar({ inert, collapsed }: { inert: boolean; collapsed: boolean }) {
  const app = useApp();
  const { sessions } = app;
  const state = useStore(sessions.state);
  const path = usePath();
  const open = useStore(sidebarOpen);
  const selecting = useStore(selectedChats) !== null;
  const shown = state.results ?? state.items;
  const nextPage = state.results ? state.nextResults : state.next;
  return (
    <nav
      className={classNames(styles.sidebar, open && styles.open, collapsed && styles.collapsed)}
      aria-label="Chats"
      inert={inert}
    >
      <div className={styles.top}>
        <Link href="/" className={styles.brand} onClick={closeSidebar}>
          <img src={withRoot("/static/icon.svg")} alt="" width="26" height="26" />
          Holdfast
        </Link>
        <IconButton name="Close sidebar" icon="close" className={text.onlyNarrow} onClick={closeSidebar} />
        <IconButton name="Hide sidebar" icon="sidebar" className={text.onlyWide} onClick={toggleSidebar} />
      </div>
      <button
        type="button"
        className={styles.newChat}
        onClick={() => {
          closeSidebar();
          openNewChat(app);
        }}
      >
        <Icon name="plus" />
        New chat
      </button>
      <SearchBox />
      {selecting && <SelectionBar shown={shown} archived={state.archived} />}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the links in it are the interactive elements */}
      <div
        className={styles.list}
        data-scroll-container
        onClick={(event) => event.target instanceof Element && event.target.closest("a") && closeSidebar()}
        onKeyDown={moveInList}
      >
        <UnsentMessages path={path} listed={shown} />
        {state.archived && !state.results && <ArchivedTitle />}
        <SessionGroups
          sessions={shown}
          path={path}
          searching={state.results !== null}
          withProjects={!state.results && !state.archived && state.loaded}
        />
        {state.loaded && !shown.length && <p className={classNames(text.quiet, styles.empty)}>{emptyText(state)}</p>}
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

function ArchivedTitle() {
  const { sessions } = useApp();
  return (
    <div className={styles.listTitle}>
      <h2>Archived chats</h2>
      <Button small onClick={() => sessions.showArchived(false)}>
        Back to chats
      </Button>
    </div>
  );
}

function emptyText({ results, archived, hasArchived }: SessionListState): string {
  if (results) return "No matches";
  if (archived) return "No archived chats";
  return hasArchived ? "No active chats" : "No chats yet";
}

/** Links to messages whose chats are not in the list: they could not be created yet, or were deleted. */
function UnsentMessages({ path, listed }: { path: string; listed: readonly Session[] }) {
  const { outbox, drafts, lostDrafts } = useApp();
  const isListed = (sid: string) => listed.some((session) => session.id === sid);
  const sent = useStore(outbox.state).filter(
    (item) => item.state !== "stored" && (!item.sid || (item.problem && !isListed(item.sid))),
  );
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

/** The links of the chats that are listed. */
const chatLinks = () => [...document.querySelectorAll<HTMLAnchorElement>(`.${styles.list} li a`)];

/** ArrowUp and ArrowDown move between the chats, and back to the search. */
function moveInList(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = chatLinks();
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  if (step === undefined || at < 0 || !isPlainKey(event)) return;
  event.preventDefault();
  if (at + step < 0) document.querySelector<HTMLElement>(`.${styles.search} input`)?.focus();
  else links[at + step]?.focus();
}

function SearchBox() {
  const { sessions } = useApp();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const onKeyDown = async (event: KeyboardEvent<HTMLInputElement>) => {
    if (!isPlainKey(event) || event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") {
      event.preventDefault();
      chatLinks()[0]?.focus();
    } else if (event.key === "Enter" && event.currentTarget.value.trim()) {
      clearTimeout(timer.current);
      await sessions.search(event.currentTarget.value); // what is listed may be of an earlier text
      requestAnimationFrame(() => chatLinks()[0]?.click());
    }
  };
  return (
    <search className={styles.search}>
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search chats"
        placeholder="Search chats"
        title={`Search chats. ${MODIFIER}+K also searches commands.`}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          const { value } = event.target;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => void sessions.search(value), SEARCH_DELAY_MS);
        }}
      />
      <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
    </search>
  );
}

interface SessionGroupsProps {
  sessions: readonly Session[];
  path: string;
  searching: boolean;
  /** Whether projects without a chat among these are listed too. */
  withProjects: boolean;
}

function SessionGroups({ sessions, path, searching, withProjects }: SessionGroupsProps) {
  const projects = useStore(useApp().projects.items);
  const [observer] = useState(() => new VisibilityObserver(RENDER_MARGIN));
  const groups = useMemo(() => {
    const others = withProjects ? projects.slice(0, MAX_OTHER_PROJECTS).map(({ name }) => name) : [];
    return groupSessions(sessions, searching, others);
  }, [sessions, searching, withProjects, projects]);
  const shown = sessions.find(({ id }) => path === `/c/${id}`)?.id;
  useEffect(() => {
    if (shown) document.querySelector(`nav li a[href$="/c/${shown}"]`)?.scrollIntoView({ block: "nearest" });
  }, [shown]);
  const outgoing = useStore(useApp().outbox.state);
  const unsent = new Set(outgoing.filter((item) => item.state !== "stored" && item.problem).map((item) => item.sid));
  const selected = useStore(selectedChats);
  const select = useCallback(
    (id: string, range: boolean) => {
      const order = [...groups.values()].flat().map((session) => session.id);
      toggleChat(id, order, range);
    },
    [groups],
  );
  return [...groups].map(([key, items]) => {
    const project = key.startsWith(PROJECT) ? key.slice(PROJECT.length) : null;
    const name = project ?? key;
    return (
      <ChatDropTarget key={key} name={name} project={project} sessions={sessions}>
        {project === null ? <h2>{name}</h2> : <ProjectHeading name={project} path={path} />}
        {toChunks(items, CHUNK_SIZE).map((chunk) => (
          <Chunk key={chunk.key} observer={observer} as="ul" always={chunk.items.some(({ id }) => id === shown)}>
            {() =>
              chunk.items.map((session) => (
                <SessionRow
                  key={session.id}
                  session={session}
                  current={path === `/c/${session.id}`}
                  unsent={unsent.has(session.id)}
                  selected={selected?.has(session.id) ?? null}
                  onSelect={select}
                />
              ))
            }
          </Chunk>
        ))}
      </ChatDropTarget>
    );
  });
}

/** Pinned first, then projects by name, then the rest by age; search results keep their order. */
function groupSessions(
  sessions: readonly Session[],
  searching: boolean,
  projects: readonly string[],
): Map<string, Session[]> {
  if (searching) return new Map(sessions.length ? [["Search results", [...sessions]]] : []);
  const inProject = (session: Session) => !session.pinned && session.project !== null;
  const byProject = (a: Session, b: Session) =>
    String(a.project).localeCompare(String(b.project)) || b.updated_at.localeCompare(a.updated_at);
  const ofProjects = Map.groupBy(sessions.filter(inProject).sort(byProject), ({ project }) => String(project));
  const names = [...new Set([...ofProjects.keys(), ...projects])].sort((a, b) => a.localeCompare(b));
  const pinned = sessions.filter((session) => session.pinned);
  const rest = sessions.filter((session) => !session.pinned && !inProject(session));
  return new Map([
    ...(pinned.length ? [["Pinned", pinned] as const] : []),
    ...names.map((name) => [PROJECT + name, ofProjects.get(name) ?? []] as const),
    ...Map.groupBy(rest, ({ updated_at }) => ageGroup(updated_at)),
  ]);
}

interface SessionRowProps {
  session: Session;
  current: boolean;
  /** Whether a message to it waits for the connection, or was refused. */
  unsent: boolean;
  /** null: chats are not being selected. */
  selected: boolean | null;
  onSelect: (id: string, range: boolean) => void;
}

const SessionRow = memo(function SessionRow({ session, current, unsent, selected, onSelect }: SessionRowProps) {
  if (selected !== null) {
    return (
      <li className={classNames(styles.session, selected && styles.current)} {...dragged(session.id)}>
        <label className={styles.choice}>
          <input
            type="checkbox"
            checked={selected}
            onChange={(event) =>
              onSelect(session.id, event.nativeEvent instanceof MouseEvent && event.nativeEvent.shiftKey)
            }
          />
          <span className={text.ellipsis}>{session.title || "Untitled chat"}</span>
        </label>
      </li>
    );
  }
  const tags = session.tags.map((tag) => `#${tag}`).join(" ");
  const excerpt = session.match?.excerpt;
  return (
    <li className={classNames(styles.session, current && styles.current)} {...dragged(session.id)}>
      <Link href={chatAddress(session)} aria-current={current ? "page" : undefined}>
        <span className={classNames(text.ellipsis, styles.title)}>
          <Highlighted text={session.title || "Untitled chat"} />
          {session.match && session.archived && <span className={styles.mark}>Archived</span>}
          {unsent && <span className={styles.mark}>Unsent</span>}
        </span>
        <SourceBadge session={session} />
        {excerpt && excerpt !== `${session.title} ${tags}` && (
          <span className={styles.excerpt}>
            <Highlighted text={withoutMarkdown(excerpt)} excerpt />
          </span>
        )}
        {tags && <span className={styles.tags}>{tags}</span>}
      </Link>
      {session.active_run_status === "waiting" ? (
        <span
          className={styles.waiting}
          role="img"
          aria-label={waitText(session.waits_for)}
          title={waitText(session.waits_for)}
        >
          {session.waits_for === "answer" ? "?" : "!"}
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

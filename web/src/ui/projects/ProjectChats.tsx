// The chats of a project, the newest first.

import { type ComponentType, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { Project } from "../../core/projects.ts";
import { CoalescedTask } from "../../core/store.ts";
import type { Session } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { formatTime } from "../format.ts";
import { openNewChat } from "../open-new-chat.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import { LISTED_PARTS, type ListedPart } from "./listed-parts.ts";
import styles from "./ProjectScreen.module.css";

const PAGE = 50;
interface Props {
  project: Project;
  ChatMenu: ComponentType<{ session: Session }>;
}

export function ProjectChats({ project, ChatMenu }: Props) {
  const app = useApp();
  const { name } = project;
  const [shown, setShown] = useState<ListedPart>("active");
  const archived = shown === "archived";
  const [count, setCount] = useState(PAGE);
  const [chats, setChats] = useState<readonly Session[] | null>(null);
  const [hasMore, setHasMore] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    const reload = new CoalescedTask(async () => {
      try {
        const found: Session[] = [];
        let cursor: string | null = null;
        do {
          const page = await app.api.sessions({ project: name, archived, limit: PAGE, cursor });
          found.push(...page.items);
          cursor = page.next;
        } while (cursor !== null && found.length < count);
        if (!current) return;
        setChats(found);
        setHasMore(cursor !== null);
        setProblem(null);
      } catch (error) {
        if (current) setProblem(errorMessage(error));
      }
    });
    void reload.run();
    const stop = app.onChange((change) => /session|reset/.test(change.kind) && void reload.run());
    return () => {
      current = false;
      stop();
    };
  }, [app, name, archived, count]);
  return (
    <section aria-label="Chats of this project" className={styles.chats}>
      <div className={styles.cardHead}>
        <h2 className={text.sectionTitle}>Chats</h2>
        <Segments label="Chats" options={LISTED_PARTS} value={shown} onChange={setShown} />
      </div>
      {problem && <Alert text={problem} />}
      {chats && !chats.length && (
        <div className={styles.empty}>
          <p className={text.quiet}>{archived ? "No archived chats" : "No chats in this project yet"}</p>
          {!archived && !project.archived && <Button onClick={() => openNewChat(app, name)}>Start a chat</Button>}
        </div>
      )}
      <ItemList label="Chats">
        {chats?.map((chat) => (
          <Item
            key={chat.id}
            title={<Link href={`/c/${chat.id}`}>{app.sessions.named(chat).title || "Untitled chat"}</Link>}
            facts={[formatTime(chat.updated_at), chat.active_run && "Running", chat.pinned && "Pinned"]}
          >
            <ChatMenu session={app.sessions.named(chat)} />
          </Item>
        ))}
      </ItemList>
      {hasMore && <Button onClick={() => setCount(count + PAGE)}>Show more</Button>}
    </section>
  );
}

// All projects, with those that are archived on request.

import { useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { Project } from "../../core/projects.ts";
import { CoalescedTask } from "../../core/store.ts";
import { useApp } from "../context.ts";
import { formatCount, formatTime } from "../format.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import { Segments } from "../widgets/Segments.tsx";
import text from "../widgets/text.module.css";
import { LISTED_PARTS, type ListedPart } from "./listed-parts.ts";
import { ProjectDot } from "./ProjectDot.tsx";
import ProjectMenu from "./ProjectMenu.tsx";
import styles from "./ProjectScreen.module.css";
import { createProject } from "./project-actions.ts";

interface ProjectPage {
  readonly items: readonly Project[];
  readonly next: string | null;
}

export default function Projects() {
  const app = useApp();
  const [shown, setShown] = useState<ListedPart>("active");
  const archived = shown === "archived";
  const [page, setPage] = useState<ProjectPage | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    const reload = new CoalescedTask(async () => {
      try {
        const found = await app.api.projects({ archived });
        if (current) setPage(found);
        setProblem(null);
      } catch (error) {
        setProblem(errorMessage(error));
      }
    });
    void reload.run();
    const stop = app.onChange((change) => /project|session|reset/.test(change.kind) && void reload.run());
    return () => {
      current = false;
      stop();
    };
  }, [app, archived]);
  const loadMore = async (cursor: string) => {
    const found = await app.api.projects({ archived, cursor }).catch(() => null);
    if (found) setPage((before) => ({ ...found, items: [...(before?.items ?? []), ...found.items] }));
  };
  return (
    <ScrollingScreen
      title="Projects"
      actions={
        <Button variant="primary" onClick={() => void createProject(app)}>
          New project
        </Button>
      }
    >
      <section aria-label="All projects" className={styles.list}>
        <Segments label="Projects" options={LISTED_PARTS} value={shown} onChange={setShown} />
        {problem && <Alert text={problem} />}
        {page && !page.items.length && (
          <p className={text.quiet}>
            {archived
              ? "No archived projects"
              : "No projects yet. A project gives its chats the same instructions, files and settings."}
          </p>
        )}
        <ItemList label="Projects">
          {page?.items.map((project) => (
            <Item
              key={project.id}
              title={
                <Link href={`/projects/${project.id}`}>
                  <ProjectDot color={project.color} />
                  {project.name}
                </Link>
              }
              facts={[
                `${formatCount(project.chats)} ${project.chats === 1 ? "chat" : "chats"}`,
                `Updated ${formatTime(project.updated_at)}`,
              ]}
            >
              <ProjectMenu project={project} />
            </Item>
          ))}
        </ItemList>
        {page?.next && (
          <p>
            <Button onClick={() => void loadMore(page.next ?? "")}>Show more</Button>
          </p>
        )}
      </section>
    </ScrollingScreen>
  );
}

// One project: its chats, and what they have in common.

import { type ComponentType, useCallback, useEffect, useState } from "react";
import { ApiError, errorMessage } from "../../core/api.ts";
import { getProject } from "../../core/project-calls.ts";
import type { Project } from "../../core/projects.ts";
import { CoalescedTask } from "../../core/store.ts";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { openNewChat } from "../open-new-chat.ts";
import { navigate } from "../router.tsx";
import { Memory } from "../settings/Memory.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { CenteredScreen, ScrollingScreen, usePageTitle } from "../widgets/Screen.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import text from "../widgets/text.module.css";
import { ProjectChats } from "./ProjectChats.tsx";
import { ProjectDot } from "./ProjectDot.tsx";
import { ProjectFiles } from "./ProjectFiles.tsx";
import ProjectMenu from "./ProjectMenu.tsx";
import styles from "./ProjectScreen.module.css";
import { ProjectSettingsDialog } from "./ProjectSettingsDialog.tsx";
import { toggleProjectArchived } from "./project-actions.ts";
import { summary } from "./project-summary.ts";

interface Props {
  id: string;
  /** The menu of a chat. It is part of the first load, and importing it here would split that. */
  ChatMenu: ComponentType<{ session: Session }>;
}

export default function ProjectScreen({ id, ChatMenu }: Props) {
  const app = useApp();
  const { models } = useStore(app.catalog);
  const { project, problem, notFound, set } = useShownProject(id);
  const [editing, setEditing] = useState(false);
  if (notFound) return <ProjectNotFound />;
  if (!project) {
    return <CenteredScreen>{problem ? <Alert text={problem} /> : <Spinner name="Loading" />}</CenteredScreen>;
  }
  const { name, color, instructions, archived } = project;
  const settings = summary(project, models);
  const hasOwnMemory = project.memory === "project" || project.memory === "project_and_shared";
  return (
    <ScrollingScreen
      title={name}
      mark={<ProjectDot color={color} />}
      actions={
        <>
          {!archived && (
            <Button variant="primary" onClick={() => openNewChat(app, name)}>
              New chat
            </Button>
          )}
          <ProjectMenu project={project} />
        </>
      }
    >
      {problem && <Alert text={problem} />}
      {archived && (
        <p className={styles.banner} role="note" aria-label="Archived">
          This project is archived.
          <Button small onClick={() => void toggleProjectArchived(app, project)}>
            Restore
          </Button>
        </p>
      )}
      <div className={styles.columns}>
        <ProjectChats project={project} ChatMenu={ChatMenu} />
        <div className={styles.side}>
          <section aria-label="Instructions" className={styles.card}>
            <div className={styles.cardHead}>
              <h2 className={text.sectionTitle}>Instructions and settings</h2>
              <Button small onClick={() => setEditing(true)}>
                Edit
              </Button>
            </div>
            {instructions ? (
              <p className={styles.instructions}>{instructions}</p>
            ) : (
              <p className={text.quiet}>Tell the model how to answer in the chats of this project.</p>
            )}
            {settings.length > 0 && (
              <dl className={styles.settings}>
                {settings.map(([label, value]) => (
                  <div key={label}>
                    <dt>{label}</dt>
                    <dd>{value}</dd>
                  </div>
                ))}
              </dl>
            )}
          </section>
          {editing && <ProjectSettingsDialog project={project} onSaved={set} onClose={() => setEditing(false)} />}
          <ProjectFiles project={project} onChange={set} />
          {hasOwnMemory && (
            <section aria-label="Project memory" className={classNames(styles.card, styles.memory)}>
              <h2 className={text.sectionTitle}>Memory</h2>
              <Memory project={project.id} />
            </section>
          )}
        </div>
      </div>
    </ScrollingScreen>
  );
}

function useShownProject(id: string) {
  const app = useApp();
  const [project, setProject] = useState<Project | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [notFound, setNotFound] = useState(false);
  useEffect(() => {
    const reload = new CoalescedTask(async () => {
      try {
        setProject(await getProject(app.api, id));
        setProblem(null);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) setNotFound(true);
        else setProblem(errorMessage(error));
      }
    });
    void reload.run();
    return app.onChange((change) => /project|reset/.test(change.kind) && void reload.run());
  }, [app, id]);
  const set = useCallback((changed: Project) => setProject(changed), []);
  return { project, problem, notFound, set };
}

function ProjectNotFound() {
  usePageTitle("Project not found");
  return (
    <CenteredScreen>
      <h1>Project not found</h1>
      <p>It may have been deleted.</p>
      <Button variant="primary" onClick={() => navigate("/projects")}>
        All projects
      </Button>
    </CenteredScreen>
  );
}

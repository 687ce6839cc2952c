// The heading of a project in the list of chats.

import { ProjectDot } from "../projects/ProjectDot.tsx";
import { projectAddress, useProject } from "../projects/use-project.ts";
import { Link } from "../router.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import text from "../widgets/text.module.css";
import styles from "./Sidebar.module.css";

const ProjectMenu = lazyOverlay(() => import("../projects/ProjectMenu.tsx"));

export function ProjectHeading({ name, path }: { name: string; path: string }) {
  const project = useProject(name);
  const address = projectAddress(project, name);
  return (
    <div className={styles.project}>
      <h2>
        <Link href={address} aria-current={path === address ? "page" : undefined}>
          <ProjectDot color={project?.color ?? null} />
          <span className={text.ellipsis}>{name}</span>
        </Link>
      </h2>
      {project && <ProjectMenu project={project} canOpen />}
    </div>
  );
}

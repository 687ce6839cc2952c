import { ProjectDot } from "../projects/ProjectDot.tsx";
import { projectAddress, useProject } from "../projects/use-project.ts";
import { Link } from "../router.tsx";
import badge from "../sidebar/SourceBadge.module.css";
import { classNames } from "../widgets/class-names.ts";
import text from "../widgets/text.module.css";

/** The project that a chat belongs to. */
export function ProjectBadge({ project: name }: { project: string | null | undefined }) {
  const project = useProject(name);
  if (!name) return null;
  return (
    <Link
      href={projectAddress(project, name)}
      className={classNames(badge.badge, badge.project, text.ellipsis)}
      title={`Project: ${name}`}
    >
      {project?.color && <ProjectDot color={project.color} />}
      {name}
    </Link>
  );
}

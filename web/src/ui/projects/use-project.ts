import type { Project } from "../../core/projects.ts";
import { useApp, useStore } from "../context.ts";

/** The project of this name; null if there is none, or if it is archived. */
export function useProject(name: string | null | undefined): Project | null {
  const items = useStore(useApp().projects.items);
  return (name && items.find((project) => project.name === name)) || null;
}

export function projectAddress(project: Project | null, name: string): string {
  return `/projects/${encodeURIComponent(project?.id ?? name)}`;
}

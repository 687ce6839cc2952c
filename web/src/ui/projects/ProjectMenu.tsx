// What can be done with a whole project.

import type { Project } from "../../core/projects.ts";
import { useApp } from "../context.ts";
import { openNewChat } from "../open-new-chat.ts";
import { navigate } from "../router.tsx";
import { closeSidebar } from "../sidebar/sidebar-state.ts";
import { Menu, type MenuItem } from "../widgets/Menu.tsx";
import { deleteProject, renameProject, toggleProjectArchived } from "./project-actions.ts";

interface Props {
  project: Project;
  /** Where the project is not shown: to show it. */
  canOpen?: boolean;
}

export default function ProjectMenu({ project, canOpen = false }: Props) {
  const app = useApp();
  const { id, name, archived } = project;
  const startChat = () => {
    closeSidebar();
    openNewChat(app, name);
  };
  const open = () => {
    closeSidebar();
    navigate(`/projects/${id}`);
  };
  const items: MenuItem[] = [
    { name: "New chat", icon: "plus", run: startChat },
    { name: "Open project", icon: "project", run: open },
    { name: "Rename", icon: "edit", run: () => void renameProject(app, project) },
    {
      name: archived ? "Restore" : "Archive",
      icon: "archive",
      run: () => void toggleProjectArchived(app, project),
    },
    { name: "Delete", icon: "trash", danger: true, run: () => void deleteProject(app, project) },
  ];
  const hidden = [...(archived ? ["New chat"] : []), ...(canOpen ? [] : ["Open project"])];
  return <Menu name={`Options for project ${name}`} items={items.filter((item) => !hidden.includes(item.name))} />;
}

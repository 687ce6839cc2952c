// Actions on a whole project, from the list of chats and from its page, and moving chats to a project.

import { errorMessage, problemOf } from "../../core/api.ts";
import type { App } from "../../core/app.ts";
import * as calls from "../../core/project-calls.ts";
import type { Project } from "../../core/projects.ts";
import type { Session } from "../../core/types.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { withoutRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";

const MAX_NAME = 200;

/** Returns whether the change was made. Its problem is shown otherwise. */
async function attempt(app: App, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    await app.projects.refresh();
    return true;
  } catch (error) {
    app.problem.set(errorMessage(error));
    return false;
  }
}

const nameOf = (text: string) => text.trim().slice(0, MAX_NAME);

export async function createProject(app: App): Promise<void> {
  const create = async (name: string) => {
    const { id } = await calls.createProject(app.api, { name: nameOf(name) });
    void app.projects.refresh();
    navigate(`/projects/${id}`);
  };
  await askText("New project", "Name", "", { action: "Create", attempt: (name) => problemOf(create(name)) });
}

export async function renameProject(app: App, project: Project): Promise<void> {
  const rename = async (text: string) => {
    const name = nameOf(text);
    if (name === project.name) return;
    await calls.patchProject(app.api, project.id, { name });
    if (app.newChat.choices.get().project === project.name) app.newChat.choose({ project: name });
    void app.projects.refresh();
    app.toasts.show(`Renamed to ${name}`);
  };
  await askText("Rename project", "Name", project.name, { attempt: (name) => problemOf(rename(name)) });
}

export async function toggleProjectArchived(app: App, { id, name, archived }: Project): Promise<void> {
  if (!archived) {
    const detail =
      "The project and its chats are hidden from the sidebar. You can restore them in Projects → Archived.";
    if (!(await askConfirmation(`Archive project “${name}”?`, detail, "Archive", undefined, true)).confirmed) return;
  }
  const set = (value: boolean) => attempt(app, () => calls.patchProject(app.api, id, { archived: value }));
  if (!(await set(!archived))) return;
  void app.sessions.refresh();
  const undo = async () => (await set(archived)) && void app.sessions.refresh();
  app.toasts.show(archived ? "Project restored" : "Project archived", { name: "Undo", run: () => void undo() });
}

export async function deleteProject(app: App, { id, name, chats }: Project): Promise<void> {
  const counted = chats === 1 ? "Its chat is" : "Its chats are";
  const { confirmed, optionChecked } = await askConfirmation(
    `Delete project “${name}”?`,
    `Its instructions, files and its own memories are deleted. ${counted} kept, without a project. This can’t be undone.`,
    "Delete",
    "Also delete its chats, archived ones too",
  );
  if (!confirmed) return;
  const deleted = await attempt(app, () => calls.deleteProject(app.api, id, optionChecked));
  if (app.newChat.choices.get().project === name) app.newChat.choose({ project: null });
  if (withoutRoot(location.pathname) === `/projects/${id}`) navigate("/projects");
  void app.sessions.refresh();
  if (deleted) app.toasts.show(optionChecked ? "Project and chats deleted" : "Project deleted");
}

/** Moves chats to a project, or to none. Returns whether all of them were moved. */
export async function moveChats(app: App, chats: readonly Session[], project: string | null): Promise<boolean> {
  const { sessions, toasts } = app;
  const others = chats.filter((chat) => chat.project !== project);
  if (!others.length) return true;
  const moved = await sessions.patchAll(others, () => ({ project }));
  if (!moved.length) return false;
  void app.projects.refresh();
  const undo = () => void sessions.patchAll(moved, (chat) => ({ project: chat.project }));
  const from = moved.every((chat) => chat.project === moved[0]?.project) ? moved[0]?.project : null;
  const text = project === null ? `Removed from ${from ?? "projects"}` : `Moved to ${project}`;
  toasts.show(text, { name: "Undo", run: undo });
  return moved.length === others.length;
}

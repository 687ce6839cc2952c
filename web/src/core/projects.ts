// The projects that are not archived: for the list of chats, and for the settings that chats inherit.

import type { Api } from "./api.ts";
import type { ProjectResponse, UpdateProjectRequest } from "./api-types.ts";
import { type ChatSettings, MEMORY_OFF, MEMORY_ON, SETTING_NAMES } from "./chat-settings.ts";
import { CoalescedTask, Store } from "./store.ts";

export type Project = ProjectResponse;
export type ProjectColor = NonNullable<UpdateProjectRequest["color"]>;

/** More are on the page of projects. */
const MAX_PAGES = 5;

export class ProjectList {
  readonly items = new Store<readonly Project[]>([]);
  private readonly reload = new CoalescedTask(() => this.load());

  constructor(private readonly api: Api) {}

  refresh = (): Promise<void> => this.reload.run();

  private async load(): Promise<void> {
    try {
      const found: Project[] = [];
      let cursor: string | null = null;
      for (let n = 0; n < MAX_PAGES; n++) {
        const page = await this.api.projects({ cursor });
        found.push(...page.items);
        cursor = page.next;
        if (cursor === null) break;
      }
      this.items.set(found);
    } catch {
      // Loaded again on reconnect.
    }
  }

  named = (name: string | null | undefined): Project | null =>
    (name && this.items.get().find((project) => project.name === name)) || null;
}

/** What counts for a chat of the project that has no values of its own. */
export function inheritedSettings(project: Project | null, defaults: ChatSettings | null): ChatSettings | null {
  if (!project) return defaults;
  const memory = project.memory === null ? defaults?.memory : project.memory === "none" ? MEMORY_OFF : MEMORY_ON;
  const values = { ...project, system: project.instructions, memory };
  return Object.fromEntries(SETTING_NAMES.map((name) => [name, values[name] ?? defaults?.[name] ?? null]));
}

// What was chosen for a chat that does not exist yet. Each tab has its own; it survives a reload.

import type { CreateSessionRequest } from "./api-types.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";

export type ChatChoices = Pick<CreateSessionRequest, "model" | "agent" | "cwd" | "agent_options">;

const KEY = "holdfast.new-chat";

export class NewChat {
  readonly choices: Store<ChatChoices>;

  constructor(private readonly env: Env) {
    this.choices = new Store(this.read());
  }

  private read(): ChatChoices {
    try {
      return (JSON.parse(this.env.tabStorage?.getItem(KEY) ?? "null") as ChatChoices | null) ?? {};
    } catch {
      return {};
    }
  }

  choose(fields: ChatChoices): void {
    this.set({ ...this.choices.get(), ...fields });
  }

  clear(): void {
    this.set({});
  }

  private set(choices: ChatChoices): void {
    this.choices.set(choices);
    try {
      this.env.tabStorage?.setItem(KEY, JSON.stringify(choices));
    } catch {
      // Storage is full or disabled: the choices do not survive a reload.
    }
  }
}

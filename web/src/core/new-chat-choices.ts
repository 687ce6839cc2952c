// What was chosen for a chat that does not exist yet. Each tab has its own; it survives a reload. The model that was
// chosen last, in any chat, is that of the next new chat.

import type { CreateSessionRequest } from "./api-types.ts";
import type { SettingName } from "./chat-settings.ts";
import type { Env } from "./env.ts";
import { Store } from "./store.ts";

export type ChatChoices = Pick<
  CreateSessionRequest,
  "model" | "agent" | "cwd" | "agent_options" | "project" | "persona" | SettingName
>;

const KEY = "holdfast.new-chat";
const LAST_MODEL_KEY = "holdfast.last-model";

export class NewChat {
  readonly choices: Store<ChatChoices>;
  /** The model that was chosen last on this device; null: the default. */
  readonly lastModel: Store<string | null>;

  constructor(private readonly env: Env) {
    this.choices = new Store(this.read());
    this.lastModel = new Store(env.storage?.getItem(LAST_MODEL_KEY) ?? null);
    env.onStorageChange((key, value) => key === LAST_MODEL_KEY && this.lastModel.set(value));
  }

  rememberModel(model: string | null): void {
    this.lastModel.set(model);
    try {
      if (model === null) this.env.storage?.removeItem(LAST_MODEL_KEY);
      else this.env.storage?.setItem(LAST_MODEL_KEY, model);
    } catch {
      // Storage is full or disabled: the model is not remembered after a reload.
    }
  }

  /** Forgets the models that were chosen, also for the chat that is being started. */
  forgetModel(): void {
    this.rememberModel(null);
    this.choose({ model: null });
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

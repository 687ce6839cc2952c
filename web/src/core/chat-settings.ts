// The settings of a chat: its own values, and the defaults that count where it has none.

import type { ChatDefaultsResponse, CreateSessionRequest } from "./api-types.ts";

export type ChatDefaults = ChatDefaultsResponse;
/** The chat's own values; null or missing: the default counts. */
export type ChatSettings = Pick<CreateSessionRequest, SettingName>;
export type SettingName = keyof ChatDefaultsResponse;

export const SETTING_NAMES: readonly SettingName[] = [
  "system",
  "reasoning_effort",
  "temperature",
  "top_p",
  "max_tokens",
  "use_tools",
  "memory",
];

/** The server's names for memory that is off, and for memory that is on where the default is off. */
export const MEMORY_OFF = "none";
export const MEMORY_ON = "default";

/** The server's name for a parameter that is not sent although there is a default for it. */
export const MODEL_DEFAULT = "model_default";
const UNSUPPORTED = "unsupported-";

/** The setting that the model rejected, by the code of the failure; null if it is about something else. */
export function rejectedSetting(code: string | undefined): SettingName | null {
  return SETTING_NAMES.find((name) => code === UNSUPPORTED + name) ?? null;
}

/** The value to store so that the model is not sent this setting. */
export function leftOut(name: SettingName, defaults: ChatSettings | null): ChatSettings {
  return { [name]: defaults?.[name] == null ? null : MODEL_DEFAULT };
}

/** Only the settings of a chat, whatever else it has. */
export function ownSettings(chat: ChatSettings): ChatSettings {
  return Object.fromEntries(SETTING_NAMES.map((name) => [name, chat[name] ?? null]));
}

/** The settings in which a chat differs from the defaults. */
export function changedSettings(chat: ChatSettings): readonly SettingName[] {
  return SETTING_NAMES.filter((name) => chat[name] != null);
}

export function isMemoryOff(chat: ChatSettings, defaults: ChatSettings | null): boolean {
  return (chat.memory ?? defaults?.memory) === MEMORY_OFF;
}

/** The value to store for a switch: none of its own if it is the default. */
export function memoryChoice(on: boolean, defaults: ChatSettings | null): string | null {
  if (on === !isMemoryOff({}, defaults)) return null;
  return on ? MEMORY_ON : MEMORY_OFF;
}

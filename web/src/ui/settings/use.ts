// What the server keeps as settings.

import { useCallback, useEffect, useState } from "react";
import type { Problem } from "../../core/api.ts";
import type { JsonObject } from "../../core/wire.ts";
import { useApp } from "../context.ts";

export type Rule = "allow" | "ask" | "deny";

export interface ServerSettings {
  readonly default_model: string | null;
  readonly tools: { readonly [name: string]: Rule };
  readonly grants: readonly { readonly tool: string; readonly scope: string; readonly created_at: string }[];
  readonly providers: readonly { readonly name: string; readonly has_key: boolean }[];
  readonly password_set: boolean;
  readonly memory: boolean;
  readonly version: string;
}

export interface SettingsProps {
  settings: ServerSettings | null;
  change: (fields: JsonObject) => Promise<void>;
  read: () => Promise<void>;
}

export function useSettings(): SettingsProps & { problem: string | null } {
  const { api } = useApp();
  const [settings, setSettings] = useState<ServerSettings | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const take = useCallback(async (answer: Promise<ServerSettings>) => {
    try {
      setSettings(await answer);
      setProblem(null);
    } catch (error) {
      setProblem((error as Problem).message);
    }
  }, []);
  const read = useCallback(() => take(api.get<ServerSettings>("/api/settings")), [api, take]);
  const change = useCallback(
    (fields: JsonObject) => take(api.call<ServerSettings>("PATCH", "/api/settings", fields)),
    [api, take],
  );
  useEffect(() => {
    void read();
  }, [read]);
  return { settings, change, read, problem };
}

// Loads and changes the server's settings.

import { useCallback, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { SettingsResponse, UpdateSettingsRequest } from "../../core/api-types.ts";
import { useApp } from "../context.ts";

export type Rule = SettingsResponse["tools"][string];

export interface SettingsProps {
  settings: SettingsResponse | null;
  change: (fields: UpdateSettingsRequest) => Promise<void>;
  reload: () => Promise<void>;
}

export function useSettings(): SettingsProps & { problem: string | null } {
  const { api } = useApp();
  const [settings, setSettings] = useState<SettingsResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback(async (request: Promise<SettingsResponse>) => {
    try {
      setSettings(await request);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, []);
  const reload = useCallback(() => load(api.get<SettingsResponse>("/api/settings")), [api, load]);
  const change = useCallback(
    (fields: UpdateSettingsRequest) => load(api.call<SettingsResponse>("PATCH", "/api/settings", fields)),
    [api, load],
  );
  useEffect(() => {
    void reload();
  }, [reload]);
  return { settings, change, reload, problem };
}

/** Paths whose changes can change other lists too: the tools of an MCP server, the devices of a password. */
const CHANGES_LISTS = /^\/api\/(mcp|password|log|token)/;

/**
 * Loads a list, and again on `reload`, when the page is shown again, and after a change elsewhere on the page. A failed
 * load keeps the previous items.
 */
export function useItems<T>(path: string): readonly [readonly T[], () => Promise<void>] {
  const { api, env } = useApp();
  const [items, setItems] = useState<readonly T[]>([]);
  const reload = useCallback(
    () =>
      api.get<{ items: T[] }>(path).then(
        (page) => setItems(page.items),
        () => undefined,
      ),
    [api, path],
  );
  useEffect(() => {
    void reload();
    const stopWrites = api.onWrite((written) => CHANGES_LISTS.test(written) && void reload());
    const stopShown = env.onVisibilityChange(() => !env.isHidden() && void reload());
    return () => {
      stopWrites();
      stopShown();
    };
  }, [api, env, reload]);
  return [items, reload];
}

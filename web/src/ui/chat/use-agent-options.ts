// What an agent program offers in a chat: options, slash commands, and directories to work in.

import { useCallback, useEffect, useState } from "react";
import type { AgentDirectoriesResponse, AgentOptionResponse, AgentOptionsResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";

export type AgentOption = AgentOptionResponse;
export type OptionValue = AgentOption["value"];

const NOTHING: AgentOptionsResponse = { options: [], commands: [] };

/**
 * Loads them, and again when `version` changes: an agent may change its options itself. `agent`: null if the chat's
 * agent is not a program.
 */
export function useAgentOptions(agent: string | null, sid: string | null, version: unknown) {
  const { api } = useApp();
  const [loaded, setLoaded] = useState<{ agent: string | null; offers: AgentOptionsResponse }>({
    agent: null,
    offers: NOTHING,
  });
  const reload = useCallback(async () => {
    if (agent === null) return;
    const offers = await api.agentOptions(agent, sid).catch(() => null);
    if (offers) setLoaded({ agent, offers });
  }, [api, agent, sid]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that there may be something new
  useEffect(() => {
    void reload();
  }, [reload, version]);
  return { offers: agent !== null && loaded.agent === agent ? loaded.offers : NOTHING, reload };
}

export function useDirectories(open: boolean): AgentDirectoriesResponse | null {
  const { api } = useApp();
  const [directories, setDirectories] = useState<AgentDirectoriesResponse | null>(null);
  useEffect(() => {
    if (open) api.agentDirectories().then(setDirectories, () => undefined);
  }, [api, open]);
  return directories;
}

// Earlier comparisons, to be shown again or deleted.

import { useCallback, useEffect, useState } from "react";
import { labelOf } from "../../core/comparison.ts";
import type { Session } from "../../core/types.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatTime } from "../format.ts";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { type CompareOption, optionName } from "./compare-options.ts";

interface Props {
  options: readonly CompareOption[];
  onOpen: (sessionIds: readonly string[]) => void;
}

export function RecentComparisons({ options, onOpen }: Props) {
  const { api } = useApp();
  const [groups, setGroups] = useState<readonly (readonly Session[])[]>([]);
  const load = useCallback(
    () =>
      api.comparedSessions().then(
        ({ items }) => setGroups(groupSessions(items)),
        () => undefined,
      ),
    [api],
  );
  useEffect(() => void load(), [load]);
  const remove = async (sessions: readonly Session[]) => {
    const detail = "Its answers will be deleted. Chats that you continued are kept.";
    const { confirmed } = await askConfirmation("Delete comparison?", detail, "Delete");
    if (!confirmed) return;
    await Promise.all(sessions.map((session) => api.deleteSession(session.id, false).catch(() => undefined)));
    await load();
  };
  if (!groups.length) return null;
  return (
    <section aria-label="Recent comparisons">
      <h2 className={text.sectionTitle}>Recent comparisons</h2>
      <ItemList label="Recent comparisons">
        {groups.map((sessions) => {
          const title = sessions[0]?.title || "Untitled comparison";
          return (
            <Item
              key={sessions[0]?.id}
              title={title}
              facts={[formatTime(sessions[0]?.created_at ?? ""), ...describe(sessions, options)]}
            >
              <ItemAction name="Open" of={title} onClick={() => onOpen(membersOf(sessions))} />
              <ItemAction name="Delete" of={title} onClick={() => void remove(sessions)} />
            </Item>
          );
        })}
      </ItemList>
    </section>
  );
}

/** By comparison, newest first; within one in the order of the panes. */
function groupSessions(sessions: readonly Session[]): Session[][] {
  const groups = new Map<string, Session[]>();
  for (const session of sessions) {
    const id = labelOf(session)?.id ?? session.id;
    groups.set(id, [...(groups.get(id) ?? []), session]);
  }
  return [...groups.values()].map((group) => group.sort((a, b) => a.created_at.localeCompare(b.created_at)));
}

/** The ids of all its sessions, also of those that were continued as chats. */
function membersOf(sessions: readonly Session[]): readonly string[] {
  const known = sessions.map((session) => labelOf(session)?.members).find((members) => members !== undefined);
  return known ?? sessions.map((session) => session.id);
}

function describe(sessions: readonly Session[], options: readonly CompareOption[]): string[] {
  const nameOf = ({ model, agent }: Session) =>
    optionName(model ? { model } : agent === "chat" ? {} : { agent }, options);
  const best = sessions.find((session) => labelOf(session)?.best);
  if (!best && sessions.some((session) => labelOf(session)?.blind)) return ["Blind test, no vote yet"];
  const chats = membersOf(sessions).length - sessions.length;
  return [
    sessions.map(nameOf).join(", "),
    ...(best ? [`Best: ${nameOf(best)}`] : []),
    ...(chats > 0 ? [`${chats} continued as ${chats === 1 ? "a chat" : "chats"}`] : []),
  ];
}

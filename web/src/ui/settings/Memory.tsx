// Everything that is remembered over all chats, or in a project: search, add, edit, pin and delete.

import { useCallback, useEffect, useRef, useState } from "react";
import { errorMessage, problemOf } from "../../core/api.ts";
import type { FactListResponse, FactResponse, MemoryProviderResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { formatTime } from "../format.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import styles from "./Settings.module.css";
import { useItems } from "./use-settings.ts";

const SEARCH_DELAY_MS = 150;

interface Props {
  /** The id of the project whose own memories these are; those of all chats without it. */
  project?: string;
}

export function Memory({ project }: Props) {
  const { api } = useApp();
  const [facts, setFacts] = useState<FactListResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const query = useRef("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const load = useCallback(
    async (cursor: string | null = null) => {
      const asked = query.current;
      const params = new URLSearchParams({
        ...(asked && { query: asked }),
        ...(cursor && { cursor }),
        ...(project && { project }),
      });
      try {
        const page = await api.get<FactListResponse>(`/api/memory?${params}`);
        if (asked !== query.current) return;
        setFacts((before) => (cursor && before ? { ...page, items: [...before.items, ...page.items] } : page));
        setProblem(null);
      } catch (error) {
        setProblem(errorMessage(error));
      }
    },
    [api, project],
  );
  useEffect(() => {
    void load();
  }, [load]);
  const change = async (request: Promise<unknown>) => {
    await request.catch((error: unknown) => setProblem(errorMessage(error)));
    await load();
  };
  const patch = (fact: FactResponse, fields: { text?: string; pinned?: boolean; confirmed?: boolean }) =>
    change(api.call("PATCH", `/api/memory/${fact.id}`, fields));
  const add = async () => {
    const post = (typed: string) => api.post("/api/memory", { text: typed.trim(), ...(project && { project }) });
    const attempt = (typed: string) => problemOf(post(typed));
    if ((await askText("Add memory", "Memory", "", { action: "Add", attempt })) !== null) await load();
  };
  const edit = async (fact: FactResponse) => {
    const edited = (await askText("Edit memory", "Memory", fact.text))?.trim();
    if (edited && edited !== fact.text) await patch(fact, { text: edited });
  };
  const remove = async (fact: FactResponse) => {
    const { confirmed } = await askConfirmation("Delete this memory?", fact.text, "Delete");
    if (confirmed) await change(api.call("DELETE", `/api/memory/${fact.id}`));
  };
  return (
    <>
      <p className={text.quiet}>
        {project
          ? "Facts from the chats of this project, used only in them. Pinned memories are always included."
          : "Holdfast remembers facts from your chats and uses them in new ones. Pinned memories are always included."}
      </p>
      {!project && <MemoryProviders />}
      <search className={styles.search}>
        <input
          type="search"
          className={forms.field}
          aria-label="Search memories"
          placeholder="Search memories"
          onChange={(event) => {
            query.current = event.target.value.trim();
            clearTimeout(timer.current);
            timer.current = setTimeout(() => void load(), SEARCH_DELAY_MS);
          }}
        />
      </search>
      {problem && <Alert text={problem} />}
      {facts && !facts.items.length && <p className={text.quiet}>{query.current ? "No matches" : "No memories yet"}</p>}
      <ItemList label="Memories">
        {facts?.items.map((fact) => (
          <Item
            key={fact.id}
            title={<span className={styles.fact}>{fact.text}</span>}
            details={
              <p className={text.quiet}>
                {statusOf(fact, facts.confirm)}
                {formatTime(fact.updated_at)} ·{" "}
                {fact.session_id ? <Link href={`/c/${fact.session_id}`}>Source chat</Link> : "Added by you"}
              </p>
            }
          >
            {facts.confirm && !fact.confirmed && (
              <ItemAction name="Confirm" of={fact.text} onClick={() => void patch(fact, { confirmed: true })} />
            )}
            <ItemAction
              name={fact.pinned ? "Unpin" : "Pin"}
              of={fact.text}
              onClick={() => void patch(fact, { pinned: !fact.pinned })}
            />
            <ItemAction name="Edit" of={fact.text} onClick={() => void edit(fact)} />
            <ItemAction name="Delete" of={fact.text} onClick={() => void remove(fact)} />
          </Item>
        ))}
      </ItemList>
      <div className={text.row}>
        {facts?.next && <Button onClick={() => void load(facts.next)}>Load more</Button>}
        <Button onClick={() => void add()}>Add memory</Button>
      </div>
    </>
  );
}

function statusOf(fact: FactResponse, confirm = false): string {
  if (confirm && !fact.confirmed) return "Not used until confirmed · ";
  return fact.pinned ? "Pinned · " : "";
}

/** Shown only if there are several providers or one has a problem. */
function MemoryProviders() {
  const [providers] = useItems<MemoryProviderResponse>("/api/memory/providers");
  if (providers.length < 2 && !providers.some((item) => item.problem)) return null;
  return (
    <ItemList label="Memory providers">
      {providers.map((item) => (
        <Item
          key={item.name}
          status={item.problem ? { text: "Unavailable", kind: "bad" } : { text: "Available", kind: "good" }}
          title={item.name}
          facts={[item.default && "Default", item.problem]}
        />
      ))}
    </ItemList>
  );
}

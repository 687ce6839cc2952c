// What is remembered over all chats: to be searched, put better, pinned, erased.

import { useCallback, useEffect, useRef, useState } from "react";
import type { Problem } from "../../core/api.ts";
import type { Page } from "../../core/wire.ts";
import { useApp } from "../context.ts";
import { when } from "../format.ts";
import { Action, Row, Rows } from "../Rows.tsx";
import { Link } from "../router.tsx";
import { ask } from "../shell.ts";

interface Fact {
  readonly id: string;
  readonly text: string;
  readonly session_id: string;
  readonly updated_at: string;
  readonly pinned: boolean;
}

interface Provider {
  readonly name: string;
  readonly default: boolean;
  readonly problem: string | null;
}

export function Memory() {
  const { api } = useApp();
  const [facts, setFacts] = useState<Page<Fact> | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const query = useRef("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const read = useCallback(
    async (cursor: string | null = null) => {
      const asked = query.current;
      const address = new URLSearchParams({ ...(asked && { query: asked }), ...(cursor && { cursor }) });
      try {
        const page = await api.get<Page<Fact>>(`/api/memory?${address}`);
        if (asked !== query.current) return;
        setFacts((before) => (cursor && before ? { ...page, items: [...before.items, ...page.items] } : page));
        setProblem(null);
      } catch (error) {
        setProblem((error as Problem).message);
      }
    },
    [api],
  );
  useEffect(() => {
    void read();
  }, [read]);
  const change = async (work: Promise<unknown>) => {
    await work.catch((error: Problem) => setProblem(error.message));
    await read();
  };
  const patch = (fact: Fact, fields: { text?: string; pinned?: boolean }) =>
    change(api.call("PATCH", `/api/memory/${fact.id}`, fields));
  const edit = async (fact: Fact) => {
    const text = await ask("What is remembered", "In words", fact.text);
    if (text?.trim() && text.trim() !== fact.text) await patch(fact, { text: text.trim() });
  };
  return (
    <>
      <p className="quiet">
        What was learnt in one chat helps in the others. Pinned facts are always in front of the model.
      </p>
      <Providers />
      <search>
        <input
          type="search"
          className="field"
          aria-label="Search memory"
          placeholder="Search what is remembered"
          onChange={(event) => {
            query.current = event.target.value.trim();
            clearTimeout(timer.current);
            timer.current = setTimeout(() => void read(), 150);
          }}
        />
      </search>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {facts && !facts.items.length && (
        <p className="quiet">{query.current ? "Nothing like that is remembered." : "Nothing is remembered yet."}</p>
      )}
      <Rows label="Remembered">
        {facts?.items.map((fact) => (
          <Row
            key={fact.id}
            status={fact.pinned ? { text: "pinned", kind: "good" } : undefined}
            title={<span className="fact">{fact.text}</span>}
            more={
              <p className="item-facts">
                <Link href={`/c/${fact.session_id}`}>{when(fact.updated_at)}</Link>
              </p>
            }
          >
            <Action
              name={fact.pinned ? "Unpin" : "Pin"}
              of={fact.text}
              onClick={() => void patch(fact, { pinned: !fact.pinned })}
            />
            <Action name="Edit" of={fact.text} onClick={() => void edit(fact)} />
            <Action
              name="Forget"
              of={fact.text}
              onClick={() => void change(api.call("DELETE", `/api/memory/${fact.id}`))}
            />
          </Row>
        ))}
      </Rows>
      {facts?.next && (
        <button type="button" className="button" onClick={() => void read(facts.next)}>
          More
        </button>
      )}
    </>
  );
}

/** Who remembers; said only where there is a choice or a problem. */
function Providers() {
  const { api } = useApp();
  const [providers, setProviders] = useState<readonly Provider[]>([]);
  useEffect(() => {
    api.get<{ items: Provider[] }>("/api/memory/providers").then(
      ({ items }) => setProviders(items),
      () => undefined,
    );
  }, [api]);
  if (providers.length < 2 && !providers.some((item) => item.problem)) return null;
  return (
    <Rows label="Memory providers">
      {providers.map((item) => (
        <Row
          key={item.name}
          status={item.problem ? { text: "not now", kind: "bad" } : { text: "ready", kind: "good" }}
          title={item.name}
          facts={[item.default && "default", item.problem]}
        />
      ))}
    </Rows>
  );
}

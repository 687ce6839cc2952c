// Shows which turns of a chat are in memory, and which are not yet.

import { useCallback, useEffect, useState } from "react";
import { type Api, errorMessage } from "../../core/api.ts";
import type { FactListResponse, FactResponse, MemoryStatusResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import styles from "./MemoryDialog.module.css";

export default function MemoryDialog({ sid, onClose }: { sid: string; onClose: () => void }) {
  const { api } = useApp();
  const [status, setStatus] = useState<MemoryStatusResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [saved, setSaved] = useState<readonly FactResponse[] | null>(null);
  const load = useCallback(async (request: Promise<MemoryStatusResponse>) => {
    setBusy(true);
    try {
      setStatus(await request);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setBusy(false);
  }, []);
  const [memories, setMemories] = useState<number | null>(null);
  const save = async () => {
    const before = await savedFacts(api, sid);
    setSaved(null);
    await load(api.post<MemoryStatusResponse>(`/api/sessions/${sid}/memory/commit`, {}));
    const known = new Set(before?.map(({ id, text }) => id + text));
    const after = await savedFacts(api, sid);
    setMemories(after?.length ?? null);
    setSaved(after?.filter(({ id, text }) => !known.has(id + text)) ?? []);
  };
  useEffect(() => {
    void load(api.get<MemoryStatusResponse>(`/api/sessions/${sid}/memory`));
    void savedFacts(api, sid).then((facts) => setMemories(facts?.length ?? null));
  }, [api, sid, load]);
  return (
    <Dialog name="Chat memory" onClose={onClose}>
      <div className={dialogBodyClass}>
        <h2>Chat memory</h2>
        <div role="status" className={styles.status}>
          {status && <p>{busy || status.committing ? "Saving to memory…" : describe(status, memories)}</p>}
          {saved && !busy && !problem && <SavedFacts facts={saved} />}
        </div>
        {status?.last_error && <Alert text={`Could not save memories: ${status.last_error}`} />}
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Link className={buttonClass()} href="/settings#memory" onClick={onClose}>
            All memories
          </Link>
          <Button
            variant="primary"
            disabled={busy || !status?.dirty_turns || status.committing}
            onClick={() => void save()}
          >
            Save now
          </Button>
          <Button onClick={onClose}>Close</Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}

function SavedFacts({ facts }: { facts: readonly FactResponse[] }) {
  if (!facts.length) return <p>Nothing new was worth remembering.</p>;
  return (
    <>
      <p>Saved:</p>
      <ul>
        {facts.map(({ id, text }) => (
          <li key={id}>{text}</li>
        ))}
      </ul>
    </>
  );
}

const MAX_FACTS = 200;

/** The newest memories that came from this chat. */
async function savedFacts(api: Api, sid: string): Promise<readonly FactResponse[] | null> {
  const page = await api.get<FactListResponse>(`/api/memory?limit=${MAX_FACTS}`).catch(() => null);
  return page?.items.filter((fact) => fact.session_id === sid) ?? null;
}

/** `memories`: how many came from the chat; null if that is not known. */
function describe(
  { dirty_turns: dirty, committed_turns: saved, provider }: MemoryStatusResponse,
  memories: number | null,
): string {
  if (provider === "none") return "Memory is off for this chat.";
  if (dirty) {
    const count = dirty === 1 ? "1 message and its answer are" : `${dirty} messages and their answers are`;
    return `${count} not in memory yet. They are saved when you start another chat.`;
  }
  if (!saved) return "Nothing to remember yet.";
  if (memories === null) return "Up to date.";
  if (!memories) return "Up to date. Nothing to remember from this chat yet.";
  return `Up to date. ${memories} ${memories === 1 ? "memory" : "memories"} from this chat.`;
}

// Shows which turns of a chat are in memory, and which are not yet.

import { useCallback, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { MemoryStatusResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";

export function MemoryDialog({ sid, onClose }: { sid: string; onClose: () => void }) {
  const { api } = useApp();
  const [status, setStatus] = useState<MemoryStatusResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
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
  useEffect(() => {
    void load(api.get<MemoryStatusResponse>(`/api/sessions/${sid}/memory`));
  }, [api, sid, load]);
  return (
    <Dialog name="Chat memory" onClose={onClose}>
      <div className={dialogBodyClass}>
        <h2>Chat memory</h2>
        {status && <p role="status">{describe(status)}</p>}
        {status?.last_error && <Alert text={`Could not save memories: ${status.last_error}`} />}
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Link className={buttonClass()} href="/settings#memory" onClick={onClose}>
            All memories
          </Link>
          <Button
            variant="primary"
            disabled={busy || !status?.dirty_turns || status.committing}
            onClick={() => void load(api.post<MemoryStatusResponse>(`/api/sessions/${sid}/memory/commit`, {}))}
          >
            Save to memory
          </Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}

function describe({ dirty_turns: dirty, committed_turns: saved, committing, provider }: MemoryStatusResponse): string {
  if (provider === "none") return "Memory is off for this chat.";
  const turns = (n: number) => `${n} ${n === 1 ? "turn" : "turns"}`;
  if (committing) return "Saving to memory…";
  if (!dirty) return saved ? `${turns(saved)} remembered. Up to date.` : "Nothing to remember yet.";
  return `${saved ? `${turns(saved)} remembered, ` : ""}${turns(dirty)} not remembered yet`;
}

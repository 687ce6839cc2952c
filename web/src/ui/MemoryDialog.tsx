// How a chat stands with the memory: what of it is remembered, and what is not yet.

import { useEffect, useState } from "react";
import type { Problem } from "../core/api.ts";
import { useApp } from "./context.ts";
import { Link } from "./router.tsx";
import { Dialog } from "./widgets.tsx";

interface Standing {
  readonly dirty_turns: number;
  readonly committing: boolean;
  readonly committed_turns: number;
  readonly last_error: string | null;
  readonly provider?: string | null;
}

export function MemoryDialog({ sid, onClose }: { sid: string; onClose: () => void }) {
  const { api } = useApp();
  const [standing, setStanding] = useState<Standing | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const take = async (answer: Promise<Standing>) => {
    setBusy(true);
    try {
      setStanding(await answer);
      setProblem(null);
    } catch (error) {
      setProblem((error as Problem).message);
    }
    setBusy(false);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when it opens
  useEffect(() => {
    void take(api.get<Standing>(`/api/sessions/${sid}/memory`));
  }, [api, sid]);
  return (
    <Dialog name="Memory of this chat" onClose={onClose}>
      <div className="dialog-body">
        <h2>Memory of this chat</h2>
        {standing && (
          <>
            <p role="status">{inWords(standing)}</p>
            {standing.last_error && <p className="problem">The last attempt failed: {standing.last_error}</p>}
          </>
        )}
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <div className="row end">
          <Link className="button" href="/settings#memory" onClick={onClose}>
            All that is remembered
          </Link>
          <button
            type="button"
            className="button primary"
            disabled={busy || !standing?.dirty_turns || standing.committing}
            onClick={() => void take(api.post<Standing>(`/api/sessions/${sid}/memory/commit`, {}))}
          >
            Remember now
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function inWords({ dirty_turns: dirty, committed_turns: kept, committing, provider }: Standing): string {
  if (provider === "none") return "Nothing of this chat is remembered: its memory is off.";
  const turns = (n: number) => `${n} ${n === 1 ? "turn" : "turns"}`;
  const done = kept
    ? `${turns(kept)} of it ${kept === 1 ? "is" : "are"} remembered`
    : "Nothing of it is remembered yet";
  if (committing) return `${done}; it is being remembered just now.`;
  return dirty ? `${done}, ${turns(dirty)} not yet.` : `${done}. Nothing new was said since.`;
}

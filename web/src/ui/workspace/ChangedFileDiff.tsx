// How one file differs from what it was, line by line.

import { useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { ChangedFileDiffResponse } from "../../core/api-types.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp } from "../context.ts";
import { Spinner } from "../widgets/Spinner.tsx";
import styles from "./Changes.module.css";

export function ChangedFileDiff({ sid, set, path }: { sid: string; set: string; path: string }) {
  const { api } = useApp();
  const [found, setFound] = useState<ChangedFileDiffResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const request = new AbortController();
    const address = workspaceAddress(sid, `changes/${encodeURIComponent(set)}/diff`, { path });
    api
      .get<ChangedFileDiffResponse>(address, request.signal)
      .then(setFound, (error) => !request.signal.aborted && setProblem(errorMessage(error)));
    return () => request.abort();
  }, [api, sid, set, path]);
  if (problem) return <p className={styles.note}>{problem}</p>;
  if (!found) return <Spinner name="Loading the differences" />;
  return (
    <>
      {found.current !== "after" && (
        <p className={styles.note}>
          {found.current === "before" ? "This file is as it was before." : "This file has changed since."}
        </p>
      )}
      {found.diff === null && <p className={styles.note}>The differences cannot be shown: this is not text.</p>}
      {found.diff !== null && <UnifiedDiff diff={found.diff} name={path} />}
    </>
  );
}

/** A unified diff without its head, which only repeats the name. */
export function UnifiedDiff({ diff, name }: { diff: string; name: string }) {
  const lines = diff.replace(/\n$/, "").split("\n");
  const shown = lines[0]?.startsWith("--- ") ? lines.slice(2) : lines;
  if (!diff) return <p className={styles.note}>The content is the same.</p>;
  return (
    <section aria-label={`Differences in ${escapeInvisible(name)}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre className={styles.diff} tabIndex={0}>
        {shown.map((line, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
          <span key={n} className={styles[kindOf(line)]}>
            {escapeInvisible(line)}
            {"\n"}
          </span>
        ))}
      </pre>
    </section>
  );
}

function kindOf(line: string): "added" | "removed" | "place" | "same" {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("@@") ? "place" : "same";
}

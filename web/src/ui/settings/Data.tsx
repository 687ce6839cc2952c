import { useRef, useState } from "react";
import type { Problem } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { Section } from "./Section.tsx";

export function Data() {
  const { api, sessions } = useApp();
  const picker = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState<string | null>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      const { items } = await api.importLines(file);
      setSaid(`${items.length} ${items.length === 1 ? "chat was" : "chats were"} imported.`);
      void sessions.refresh();
    } catch (error) {
      setSaid((error as Problem).message);
    }
  };
  return (
    <Section title="Data">
      <p className="quiet">
        A chat is exported from its menu. A backup of everything: <code>holdfast backup</code>.
      </p>
      <button type="button" className="button" onClick={() => picker.current?.click()}>
        Import chats
      </button>
      <input ref={picker} type="file" accept=".jsonl" hidden onChange={(event) => void take(event.target.files?.[0])} />
      {said && <p role="status">{said}</p>}
    </Section>
  );
}

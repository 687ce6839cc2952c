import { useRef, useState } from "react";
import type { Problem } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { Row, Rows } from "../Rows.tsx";
import { CopyButton } from "../widgets.tsx";

const BACKUP = "holdfast backup DIRECTORY";

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
    <>
      <Rows>
        <Row title="Export" facts={["All chats with their files, in one file. One alone is exported from its menu."]}>
          <a className="button small" href="/api/export" download>
            Export all chats
          </a>
        </Row>
        <Row title="Import" facts={["What was exported, here or elsewhere, comes in as new chats."]}>
          <button type="button" className="button small" onClick={() => picker.current?.click()}>
            Import chats
          </button>
        </Row>
        <Row
          title="Backup"
          facts={["A copy of everything, journals and settings too, beside the running server. In a terminal:"]}
          more={
            <p className="command">
              <code>{BACKUP}</code>
              <CopyButton text={() => BACKUP} name="Copy the command" />
            </p>
          }
        />
      </Rows>
      <input ref={picker} type="file" accept=".jsonl" hidden onChange={(event) => void take(event.target.files?.[0])} />
      {said && <p role="status">{said}</p>}
    </>
  );
}

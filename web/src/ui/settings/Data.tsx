import { useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { type ImportProgress, type ImportSummary, importFile } from "../../core/chat-import.ts";
import { useApp } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { Button, buttonClass, CopyButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import styles from "./Settings.module.css";

const BACKUP_COMMAND = "holdfast backup DIRECTORY";
const SOURCES = [
  ["", "Detect source"],
  ["chatgpt", "ChatGPT"],
  ["claude", "Claude"],
  ["open-webui", "Open WebUI"],
  ["librechat", "LibreChat"],
  ["hermes", "Hermes Agent"],
  ["hermes-webui", "Hermes WebUI"],
] as const;

export function Data() {
  return (
    <ItemList>
      <Item
        title="Export"
        facts={["Download all chats and their files as one file. To export one chat, use its menu."]}
      >
        <a className={buttonClass(undefined, true)} href={withRoot("/api/export")} download>
          Export all chats
        </a>
      </Item>
      <ImportItem />
      <Item
        title="Backup"
        facts={["Back up everything, including recordings and settings, while the server runs. In a terminal:"]}
        details={
          <p className={styles.command}>
            <code>{BACKUP_COMMAND}</code>
            <CopyButton text={() => BACKUP_COMMAND} name="Copy command" />
          </p>
        }
      />
    </ItemList>
  );
}

function ImportItem() {
  const { api, sessions } = useApp();
  const fileInput = useRef<HTMLInputElement>(null);
  const [source, setSource] = useState("");
  const [progress, setProgress] = useState<ImportProgress | null>(null);
  const [summary, setSummary] = useState<ImportSummary | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const importChats = async (file: File) => {
    setSummary(null);
    setProblem(null);
    if (!file.size) return setProblem("This file is empty.");
    setProgress({ what: "reading", done: 0, total: 0 });
    try {
      setSummary(await importFile(api, file, source, setProgress));
      void sessions.refresh();
    } catch (error) {
      setProblem(errorMessage(error));
    } finally {
      setProgress(null);
    }
  };
  return (
    <Item
      title="Import"
      facts={["Import chats from Holdfast or another app. Importing again adds only what is new."]}
      details={
        <div role="status" className={styles.importStatus}>
          {progress && (
            <label>
              {progress.what === "reading" ? "Reading…" : "Importing…"}{" "}
              <progress max={progress.total || undefined} value={progress.total ? progress.done : undefined} />
            </label>
          )}
          {summary && <Summary summary={summary} />}
          {problem && <p>{problem}</p>}
        </div>
      }
    >
      <select
        className={classNames(forms.field, forms.small)}
        aria-label="Import from"
        value={source}
        onChange={(event) => setSource(event.target.value)}
      >
        {SOURCES.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <Button small disabled={progress !== null} onClick={() => fileInput.current?.click()}>
        Import chats
      </Button>
      <input
        ref={fileInput}
        type="file"
        accept=".jsonl,.json,.zip,.db"
        hidden
        onChange={(event) => {
          const file = event.target.files?.[0];
          event.target.value = ""; // the same file can be chosen again
          if (file) void importChats(file);
        }}
      />
    </Item>
  );
}

function Summary({ summary }: { summary: ImportSummary }) {
  const { imported, updated, unchanged, skipped, skipped_count } = summary;
  const counts = [
    `${imported} ${imported === 1 ? "chat" : "chats"} imported`,
    updated && `${updated} updated`,
    unchanged && `${unchanged} unchanged`,
  ];
  return (
    <>
      <p>{counts.filter(Boolean).join(", ")}</p>
      {skipped_count > 0 && (
        <details>
          <summary>{`${skipped_count} skipped`}</summary>
          <ul>
            {skipped.map(({ item, reason }) => (
              <li key={`${item} ${reason}`}>{`${item}: ${reason}`}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

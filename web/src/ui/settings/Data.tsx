import { useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { SettingsResponse } from "../../core/api-types.ts";
import { type ImportProgress, type ImportSummary, importFile } from "../../core/chat-import.ts";
import { useApp } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass, CopyButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import styles from "./Settings.module.css";
import type { SettingsProps } from "./use-settings.ts";

/** The command that backs up this server, as far as the server tells where its data is. */
function backupCommand(settings: SettingsResponse | null): string {
  const directory = settings?.data_dir;
  if (!directory) return "holdfast backup --data-dir DATA_DIRECTORY BACKUP_DIRECTORY";
  return `holdfast backup --data-dir ${/^[\w/.+-]+$/.test(directory) ? directory : JSON.stringify(directory)} BACKUP_DIRECTORY`;
}

const SOURCES = [
  ["", "Detect source"],
  ["chatgpt", "ChatGPT"],
  ["claude", "Claude"],
  ["open-webui", "Open WebUI"],
  ["librechat", "LibreChat"],
  ["hermes", "Hermes Agent"],
  ["hermes-webui", "Hermes WebUI"],
] as const;

export function Data({ settings }: SettingsProps) {
  const command = backupCommand(settings);
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
        facts={[
          "To copy everything, settings included, run this command in a terminal on the server. The server can keep running.",
        ]}
        details={
          <p className={styles.command}>
            <code>{command}</code>
            <CopyButton text={() => command} name="Copy command" />
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
        <>
          <div role="status" className={styles.importStatus}>
            {progress && (
              <label>
                {progress.what === "reading" ? "Reading…" : "Importing…"}{" "}
                <progress max={progress.total || undefined} value={progress.total ? progress.done : undefined} />
              </label>
            )}
            {summary && <Summary summary={summary} />}
          </div>
          {problem && <Alert text={problem} />}
        </>
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
  const { imported, updated, unchanged, sessions, skipped, skipped_count } = summary;
  const more = imported - sessions.length;
  const counts = [
    `${imported} ${imported === 1 ? "chat" : "chats"} imported`,
    updated && `${updated} updated`,
    unchanged && `${unchanged} unchanged`,
  ];
  return (
    <>
      <p>{counts.filter(Boolean).join(", ")}</p>
      {sessions.length > 0 && (
        <ul>
          {sessions.map(({ id, title }) => (
            <li key={id}>
              <Link href={`/c/${id}`}>{title || "Untitled chat"}</Link>
            </li>
          ))}
          {more > 0 && <li>{`and ${more} more, under their own dates`}</li>}
        </ul>
      )}
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

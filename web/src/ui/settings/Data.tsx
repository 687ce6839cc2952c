import { useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { Button, buttonClass, CopyButton } from "../widgets/buttons.tsx";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import styles from "./Settings.module.css";

const BACKUP_COMMAND = "holdfast backup DIRECTORY";

export function Data() {
  const { api, sessions } = useApp();
  const fileInput = useRef<HTMLInputElement>(null);
  const [result, setResult] = useState<string | null>(null);
  const importChats = async (file: File | undefined) => {
    if (!file) return;
    if (!file.size) return setResult("This file is empty.");
    try {
      const { items } = await api.importLines(file);
      setResult(`${items.length} ${items.length === 1 ? "chat" : "chats"} imported`);
      void sessions.refresh();
    } catch (error) {
      setResult(errorMessage(error));
    }
  };
  return (
    <>
      <ItemList>
        <Item
          title="Export"
          facts={["Download all chats and their files as one file. To export one chat, use its menu."]}
        >
          <a className={buttonClass(undefined, true)} href="/api/export" download>
            Export all chats
          </a>
        </Item>
        <Item title="Import" facts={["Import chats from a Holdfast export."]}>
          <Button small onClick={() => fileInput.current?.click()}>
            Import chats
          </Button>
        </Item>
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
      <input
        ref={fileInput}
        type="file"
        accept=".jsonl"
        hidden
        onChange={(event) => void importChats(event.target.files?.[0])}
      />
      {result && <p role="status">{result}</p>}
    </>
  );
}

// The settings of chats that have none of their own.

import { type FormEvent, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { UpdateChatDefaultsRequest } from "../../core/api-types.ts";
import { type ChatSettings, MEMORY_OFF, ownSettings } from "../../core/chat-settings.ts";
import { Store } from "../../core/store.ts";
import { ChatSettingsFields } from "../chat/ChatSettingsFields.tsx";
import { useApp, useStore } from "../context.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import text from "../widgets/text.module.css";
import styles from "./ChatDefaultsForm.module.css";
import type { SettingsProps } from "./use-settings.ts";

/** Changes that are not saved yet: they are kept while other pages are shown. */
const unsaved = new Store<ChatSettings | null>(null);
const warn = (event: BeforeUnloadEvent) => event.preventDefault();
unsaved.subscribe(() => {
  if (unsaved.get()) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
});

export function ChatDefaultsForm({ settings }: SettingsProps) {
  const app = useApp();
  const { chatDefaults } = useStore(app.catalog);
  const edited = useStore(unsaved);
  const fields = edited ?? (chatDefaults && ownSettings(chatDefaults));
  const [problem, setProblem] = useState<string | null>(null);
  const [saved, setSaved] = useState(false);
  if (!fields) return null;
  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      const memory = fields.memory === MEMORY_OFF ? MEMORY_OFF : null;
      const changed = { ...fields, memory } as UpdateChatDefaultsRequest; // only fields with defaults offer the model's
      app.catalog.patch({ chatDefaults: await app.api.changeChatDefaults(changed) });
      setProblem(null);
      unsaved.set(null);
      setSaved(true);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <form className={styles.form} aria-label="Chat defaults" onSubmit={(event) => void save(event)}>
      <p className={text.quiet}>Applies to chats that don’t set their own value, starting with the next message.</p>
      <ChatSettingsFields
        values={fields}
        defaults={null}
        model={null}
        isProgram={false}
        hasInstructions
        hasMemory={settings?.memory ?? false}
        onChange={(change) => {
          setSaved(false);
          unsaved.set({ ...fields, ...change });
        }}
      />
      {problem && <Alert text={problem} />}
      <div className={text.row}>
        <Button type="submit" variant="primary">
          Save defaults
        </Button>
        {edited && <Button onClick={() => unsaved.set(null)}>Discard</Button>}
        <span className={text.quiet} role="status">
          {edited ? "Unsaved changes" : saved ? "Saved" : ""}
        </span>
      </div>
    </form>
  );
}

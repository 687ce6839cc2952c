// Opens the settings of a chat, and shows whether they differ from the defaults.

import { Suspense, useEffect, useRef } from "react";
import { type ChatSettings, changedSettings, isMemoryOff } from "../../core/chat-settings.ts";
import { inheritedSettings } from "../../core/projects.ts";
import { useApp, useStore } from "../context.ts";
import { chatSettingsOpen } from "../dialogs.ts";
import { lazyComponent } from "../lazy-load.ts";
import { useProject } from "../projects/use-project.ts";
import badge from "../sidebar/SourceBadge.module.css";
import { iconButtonClass } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import styles from "./ChatSettingsButton.module.css";
import type { ChatSettingsDialogProps } from "./ChatSettingsDialog.tsx";

const ChatSettingsDialog = lazyComponent(() => import("./ChatSettingsDialog.tsx"));

export function ChatSettingsButton(props: Pick<ChatSettingsDialogProps, "chat" | "onSave">) {
  const open = useStore(chatSettingsOpen);
  const button = useRef<HTMLButtonElement>(null);
  const app = useApp();
  const { agents, defaultModel } = useStore(app.catalog);
  const { agent, model, project } = props.chat;
  const inherited = useProject(project)?.model ?? defaultModel;
  const isProgram = agents.some((item) => item.name === agent && item.is_program); // it has a model of its own
  const hasModel = !isProgram && model != null && model !== inherited;
  const isChanged = hasModel || changedSettings(props.chat).length > 0;
  const name = isChanged ? "Chat settings (changed)" : "Chat settings";
  useEffect(() => () => chatSettingsOpen.set(false), []);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !open) button.current?.focus(); // while the dialog is there, nothing else can have it
    wasOpen.current = open;
  }, [open]);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={classNames(iconButtonClass, styles.button)}
        aria-label={name}
        aria-haspopup="dialog"
        title={name}
        onClick={() => chatSettingsOpen.set(true)}
      >
        <Icon name="sliders" />
        {isChanged && <span className={styles.dot} />}
      </button>
      {open && (
        <Suspense fallback={null}>
          <ChatSettingsDialog {...props} onClose={() => chatSettingsOpen.set(false)} />
        </Suspense>
      )}
    </>
  );
}

/** Marks a chat that recalls and remembers nothing. */
export function MemoryOffBadge({ chat }: { chat: ChatSettings & { readonly project?: string | null } }) {
  const { chatDefaults } = useStore(useApp().catalog);
  const project = useProject(chat.project);
  if (!isMemoryOff(chat, inheritedSettings(project, chatDefaults))) return null;
  return (
    <span className={badge.badge} title="This chat does not use or save memories">
      Memory off
    </span>
  );
}

// The files that all chats of a project can read: chosen, or dropped anywhere on the page.

import { useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { addProjectFile, removeProjectFile } from "../../core/project-calls.ts";
import type { Project } from "../../core/projects.ts";
import { useFileDrop } from "../chat/use-file-drop.ts";
import { useApp } from "../context.ts";
import { formatSize } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { Alert } from "../widgets/Alert.tsx";
import { Button, IconButton } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./ProjectScreen.module.css";

interface Props {
  project: Project;
  onChange: (project: Project) => void;
}

export function ProjectFiles({ project, onChange }: Props) {
  const { api } = useApp();
  const [uploading, setUploading] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const add = async (files: Iterable<File>) => {
    setProblem(null);
    for (const file of files) {
      setUploading((n) => n + 1);
      try {
        if (!file.size) throw new Error("This file is empty.");
        const { id } = await api.upload(file);
        onChange(await addProjectFile(api, project.id, id));
      } catch (error) {
        setProblem(`${file.name} was not added. ${errorMessage(error)}`);
      }
      setUploading((n) => n - 1);
    }
  };
  const remove = async (fid: string) => {
    try {
      onChange(await removeProjectFile(api, project.id, fid));
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const over = useFileDrop((files) => void add([...files]));
  return (
    <section aria-label="Files" className={classNames(styles.card, over && styles.dropping)}>
      <div className={styles.cardHead}>
        <h2 className={text.sectionTitle}>Files</h2>
        <Button small onClick={() => input.current?.click()}>
          Add files
        </Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            void add([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      {!project.files.length && (
        <p className={text.quiet}>Add text, images or PDFs. Every chat of this project can read them.</p>
      )}
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      <ul className={styles.files} aria-label="Project files">
        {project.files.map((file) => (
          <li key={file.id}>
            <Icon name="file" />
            <a href={withRoot(`/api/files/${file.id}/content`)} className={text.ellipsis} title={file.name}>
              {file.name}
            </a>
            <span className={text.quiet}>{formatSize(file.size)}</span>
            <IconButton name={`Remove ${file.name}`} icon="close" onClick={() => void remove(file.id)} />
          </li>
        ))}
      </ul>
      <p className={uploading ? text.quiet : text.visuallyHidden} role="status">
        {uploading > 0 ? "Uploading…" : ""}
      </p>
    </section>
  );
}

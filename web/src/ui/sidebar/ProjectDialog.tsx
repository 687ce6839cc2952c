// Moves chats to a project, to a new one, or to none.

import { useEffect, useRef, useState } from "react";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { moveChats } from "../projects/project-actions.ts";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";

const NEW_PROJECT = "new";
const NO_PROJECT = "none";
/** Before the names of projects, which may be any words. */
const PROJECT = "project:";

interface ProjectDialogProps {
  chats: readonly Session[];
  onMoved?: () => void;
  onClose: () => void;
}

export default function ProjectDialog({ chats, onMoved, onClose }: ProjectDialogProps) {
  const app = useApp();
  const { items } = useStore(app.sessions.state);
  const known = useStore(app.projects.items);
  const named = [...chats, ...items].flatMap(({ project }) => project ?? []);
  const projects = [...new Set([...named, ...known.map(({ name }) => name)])].sort((a, b) => a.localeCompare(b));
  /** The project that all of them are in. */
  const common = chats.every(({ project }) => project === chats[0]?.project) ? chats[0]?.project : null;
  const [chosen, setChosen] = useState(() => {
    if (common) return PROJECT + common;
    return projects.length ? NO_PROJECT : NEW_PROJECT;
  });
  const [name, setName] = useState("");
  const isNew = chosen === NEW_PROJECT;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isNew) field.current?.focus();
  }, [isNew]);
  const project = isNew ? name.trim() : chosen === NO_PROJECT ? null : chosen.slice(PROJECT.length);
  const save = async () => {
    onClose();
    if (await moveChats(app, chats, project)) onMoved?.();
  };
  return (
    <Dialog name="Move to project" onClose={onClose}>
      <form
        className={dialogBodyClass}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <h2>Move to project</h2>
        <label>
          Project
          <select className={forms.field} value={chosen} onChange={(event) => setChosen(event.target.value)}>
            <option value={NO_PROJECT}>No project</option>
            {projects.map((item) => (
              <option key={item} value={PROJECT + item}>
                {item}
              </option>
            ))}
            <option value={NEW_PROJECT}>New project…</option>
          </select>
        </label>
        {isNew && (
          <label>
            Project name
            <input
              ref={field}
              value={name}
              maxLength={200}
              required
              onChange={(event) => setName(event.target.value)}
            />
          </label>
        )}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={isNew && !name.trim()}>
            Move
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

// Moves a chat to a project: one of those in the list of chats, a new one, or none.

import { useState } from "react";
import type { Session } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";

const NEW_PROJECT = "new";
const NO_PROJECT = "none";
/** Before the names of projects, which may be any words. */
const PROJECT = "project:";

export function ProjectDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { sessions } = useApp();
  const { items } = useStore(sessions.state);
  const named = [session, ...items].flatMap(({ project }) => project ?? []);
  const projects = [...new Set(named)].sort((a, b) => a.localeCompare(b));
  const [chosen, setChosen] = useState(() => {
    if (session.project !== null) return PROJECT + session.project;
    return projects.length ? NO_PROJECT : NEW_PROJECT;
  });
  const [name, setName] = useState("");
  const isNew = chosen === NEW_PROJECT;
  const project = isNew ? name.trim() : chosen === NO_PROJECT ? null : chosen.slice(PROJECT.length);
  const save = () => {
    onClose();
    void sessions.patch(session.id, { project });
  };
  return (
    <Dialog name="Move to project" onClose={onClose}>
      <form
        className={dialogBodyClass}
        onSubmit={(event) => {
          event.preventDefault();
          save();
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
            Name of the new project
            <input value={name} maxLength={200} required onChange={(event) => setName(event.target.value)} />
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

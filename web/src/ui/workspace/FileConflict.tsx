// Two versions of a file, of which one is to be kept.

import { useEffect, useRef } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import { compareTexts, toTextField, type VersionText } from "../../core/text-editing.ts";
import { Button } from "../widgets/buttons.tsx";
import styles from "./FileEditor.module.css";

export interface ConflictingVersion {
  /** Null: the file was deleted. */
  readonly etag: string | null;
  /** Null: it is no text, or too long. */
  readonly text: string | null;
}

interface Props {
  mine: string;
  theirs: ConflictingVersion;
  saving: boolean;
  onKeepMine: () => void;
  onTakeTheirs: () => void;
  onBack: () => void;
}

export function FileConflict({ mine, theirs, saving, onKeepMine, onTakeTheirs, onBack }: Props) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.focus();
  }, []);
  const [own, other] = compareTexts(mine, toTextField(theirs.text ?? ""));
  const deleted = theirs.etag === null;
  return (
    <section ref={box} className={styles.conflict} aria-label="Conflict" tabIndex={-1}>
      <div role="alert">
        <h3>{deleted ? "This file was deleted" : "This file has changed since you opened it"}</h3>
        <p>
          {deleted
            ? "Save your version as a new file, or discard it."
            : "Someone else, or an agent, saved another version. Nothing was overwritten."}
        </p>
      </div>
      <div className={styles.versions}>
        <Version name="Your version" text={own} />
        {theirs.text !== null && <Version name="Version on disk" text={other} />}
      </div>
      {!deleted && theirs.text === null && <p>The version on disk is not text, or is too long to be shown.</p>}
      <div className={styles.bar}>
        <Button variant="primary" small disabled={saving} onClick={onKeepMine}>
          {deleted ? "Save as new file" : "Keep mine"}
        </Button>
        <Button small disabled={saving} onClick={onTakeTheirs}>
          {deleted ? "Discard mine" : "Use version on disk"}
        </Button>
        <Button small onClick={onBack}>
          Back to editing
        </Button>
      </div>
    </section>
  );
}

function Version({ name, text: { before, changed, after } }: { name: string; text: VersionText }) {
  return (
    <section aria-label={name}>
      <h4>{name}</h4>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre tabIndex={0}>
        {before && `${escapeInvisible(before)}\n`}
        <mark>{escapeInvisible(changed)}</mark>
        {after && `\n${escapeInvisible(after)}`}
      </pre>
    </section>
  );
}

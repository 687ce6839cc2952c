// Creates a link to a read-only snapshot of a chat, or of one run. The link is shown once: the server does not store it.

import { type FormEvent, useEffect, useRef, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import {
  createShare,
  EXPIRIES,
  isLocalAddress,
  SHARE_KINDS,
  type ShareExpiry,
  shareAddress,
} from "../../core/share-links.ts";
import { useApp } from "../context.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, copyText, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";
import styles from "./ShareDialog.module.css";

interface ShareDialogProps {
  sid: string;
  /** Share only the recording of this run. */
  rid?: string;
  onClose: () => void;
}

const CONTENTS = {
  text: "The messages that the chat shows now.",
  recording: "Your questions, and a timeline of each answer that can be replayed.",
  run: "Your question, and a timeline of the answer that can be replayed.",
} as const;

export default function ShareDialog({ sid, rid, onClose }: ShareDialogProps) {
  const { api } = useApp();
  const [kind, setKind] = useState<"text" | "recording">(rid ? "recording" : "text");
  const [included, setIncluded] = useState({ reasoning: false, tools: false, files: false });
  const [days, setDays] = useState<ShareExpiry>(7);
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const create = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const run = rid ? { run_id: rid } : {};
      const made = await createShare(api, sid, { kind, ...run, ...included, expires_in_days: days });
      setLink(shareAddress(location.origin, made));
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setBusy(false);
  };
  const title = rid ? "Share recording" : "Share chat";
  if (link) return <CreatedLink title={title} link={link} onClose={onClose} />;
  const options = [
    ["reasoning", "Reasoning"],
    ["tools", "Tool calls and plans"],
    ["files", "Images and files"],
  ] as const;
  return (
    <Dialog name={title} onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={(event) => void create(event)}>
        <h2>{title}</h2>
        <div className={styles.group}>
          {!rid && <Segments label="Share as" options={SHARE_KINDS} value={kind} onChange={setKind} />}
          <p className={forms.hint}>
            {CONTENTS[rid ? "run" : kind]} The copy is read-only and does not include later messages.
          </p>
        </div>
        <fieldset className={styles.options}>
          <legend>Include</legend>
          {options.map(([name, label]) => (
            <label key={name} className={forms.checkbox}>
              <input
                type="checkbox"
                checked={included[name]}
                onChange={({ target }) => setIncluded({ ...included, [name]: target.checked })}
              />
              {label}
            </label>
          ))}
          <p className={forms.hint}>
            Memories, the system prompt and settings are never included. What is written in messages and tool calls is
            shared as it is.
          </p>
        </fieldset>
        <label>
          Link expires
          <select
            className={forms.field}
            value={String(days)}
            onChange={({ target }) => setDays(EXPIRIES.find(([value]) => String(value) === target.value)?.[0] ?? null)}
          >
            {EXPIRIES.map(([value, name]) => (
              <option key={name} value={String(value)}>
                {value === null ? name : `After ${name}`}
              </option>
            ))}
          </select>
        </label>
        <p className={forms.hint}>
          Anyone who can reach this server can open the link, without logging in.
          {isLocalAddress(location.hostname) && " Right now only this computer can reach it."} Deleting the chat revokes
          it.
        </p>
        {problem && <Alert text={problem} />}
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={busy}>
            {busy ? "Creating…" : "Create link"}
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

function CreatedLink({ title, link, onClose }: { title: string; link: string; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus(); // the button that created it is gone
    field.current?.select();
  }, []);
  const copy = async () => {
    await copyText(link);
    setCopied(true);
  };
  return (
    <Dialog name={title} onClose={onClose}>
      <div className={dialogBodyClass}>
        <h2>{title}</h2>
        <label>
          Link
          <input ref={field} className={forms.field} readOnly value={link} onFocus={({ target }) => target.select()} />
        </label>
        <p className={forms.hint} role="status">
          {copied ? "Copied." : "Copy the link now. It is not stored, so it can’t be shown again."}
        </p>
        <p className={forms.hint}>
          You can revoke it in{" "}
          <Link href="/settings#sharing" onClick={onClose}>
            Settings → Sharing
          </Link>
          .
        </p>
        <FormButtons>
          <Button onClick={onClose}>Close</Button>
          <Button variant="primary" onClick={() => void copy()}>
            Copy link
          </Button>
        </FormButtons>
      </div>
    </Dialog>
  );
}

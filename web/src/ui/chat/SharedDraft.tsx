// Keeps the text of the message box the same on all devices (`core/draft-sync`), and asks which text to keep where two
// devices have typed.

import { useEffect, useEffectEvent, useState } from "react";
import { DraftSync, isShared } from "../../core/draft-sync.ts";
import { Store } from "../../core/store.ts";
import { useApp, useStore } from "../context.ts";
import { Button } from "../widgets/buttons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Composer.module.css";
import { focusMessageBox } from "./focus.ts";

interface Props {
  draftId: string;
  value: string;
  onChange: (value: string) => void;
}

const MAX_SHOWN = 200;
const shorten = (value: string) => (value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
const NOTHING = new Store<string | null>(null);

export default function SharedDraft({ draftId, value, onChange }: Props) {
  const app = useApp();
  const [sync, setSync] = useState<DraftSync | null>(null);
  const other = useStore(sync?.other ?? NOTHING);
  const begin = useEffectEvent(() => new DraftSync(app.env, app.api, app.drafts, draftId, value, onChange));
  useEffect(() => {
    if (!isShared(draftId)) return;
    const sync = begin();
    setSync(sync);
    sync.read();
    const read = () => sync.read();
    const stops = [
      app.onChange(({ kind }) => kind === "reset" && sync.read()), // connected again
      app.env.onVisibilityChange(() => (app.env.isHidden() ? sync.save() : sync.read())),
      () => removeEventListener("focus", read),
      () => sync.close(),
    ];
    addEventListener("focus", read);
    return () => {
      for (const stop of stops) stop();
    };
  }, [app, draftId]);
  if (other === null || !sync) return null;
  const choose = (which: "mine" | "other") => {
    sync.choose(which);
    focusMessageBox();
  };
  return (
    <div className={styles.hint} role="status">
      <p className={text.plain}>From another device: “{shorten(other)}”</p>
      <Button small onClick={() => choose("other")}>
        Use it
      </Button>
      <Button small onClick={() => choose("mine")}>
        {value.trim() ? "Keep this text" : "Discard it"}
      </Button>
    </div>
  );
}

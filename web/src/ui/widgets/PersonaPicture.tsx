// The picture of a persona: its image, its emoji, or the first letter of its name.

import { useState } from "react";
import type { MessagePersonaResponse } from "../../core/api-types.ts";
import { withRoot } from "../root-path.ts";
import styles from "./PersonaPicture.module.css";

export function PersonaPicture({ persona: { name, emoji, picture } }: { persona: MessagePersonaResponse }) {
  const [missing, setMissing] = useState<string | null>(null);
  return (
    <span className={styles.picture} aria-hidden>
      {picture && picture !== missing ? (
        <img
          src={withRoot(`/api/files/${encodeURIComponent(picture)}/content`)}
          alt=""
          onError={() => setMissing(picture)}
        />
      ) : (
        (emoji ?? [...name.trim()][0]?.toUpperCase())
      )}
    </span>
  );
}

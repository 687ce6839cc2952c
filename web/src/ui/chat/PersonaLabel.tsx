// The name and the picture of a persona: of the one that gave an answer, or of the one that is chosen for a chat.

import { useEffect, useState } from "react";
import type { MessagePersonaResponse } from "../../core/api-types.ts";
import { listPersonas } from "../../core/persona-calls.ts";
import { useApp } from "../context.ts";
import { classNames } from "../widgets/class-names.ts";
import { PersonaPicture } from "../widgets/PersonaPicture.tsx";
import styles from "./PersonaLabel.module.css";

interface Props {
  /** As an answer has it. */
  persona?: MessagePersonaResponse;
  /** The id of the chat's persona, which may have been deleted. */
  chosen?: string;
}

export default function PersonaLabel({ persona, chosen }: Props) {
  const { api } = useApp();
  const [found, setFound] = useState<MessagePersonaResponse | null>(null);
  useEffect(() => {
    if (chosen === undefined) return;
    listPersonas(api).then(
      (personas) => setFound(personas.find(({ id }) => id === chosen) ?? null),
      () => undefined,
    );
  }, [api, chosen]);
  const shown = persona ?? found;
  if (!shown) return null;
  return (
    <span
      className={classNames(styles.label, chosen !== undefined && styles.chosen)}
      title={chosen === undefined ? undefined : `Persona: ${shown.name}`}
    >
      <PersonaPicture persona={shown} />
      <span className={styles.name}>{shown.name}</span>
    </span>
  );
}

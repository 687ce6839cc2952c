// Personas: who answers in a chat, with a name, a picture, a model and instructions.

import { useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { modelName } from "../../core/models.ts";
import { deletePersona, type PersonaResponse } from "../../core/persona-calls.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import { PersonaPicture } from "../widgets/PersonaPicture.tsx";
import text from "../widgets/text.module.css";
import { PersonaDialog } from "./PersonaDialog.tsx";
import { useItems } from "./use-settings.ts";

export function Personas() {
  const app = useApp();
  const { models } = useStore(app.catalog);
  const [personas, reload] = useItems<PersonaResponse>("/api/personas");
  const [problem, setProblem] = useState<string | null>(null);
  const [edited, setEdited] = useState<PersonaResponse | "new" | null>(null);
  const chat = (persona: PersonaResponse) => {
    app.newChat.choose({ persona: persona.id, ...(persona.model ? { model: persona.model } : {}) });
    navigate("/");
  };
  const remove = async (persona: PersonaResponse) => {
    const detail = "Its chats go on without it. Their answers keep its name.";
    if (!(await askConfirmation(`Delete ${persona.name}?`, detail, "Delete")).confirmed) return;
    try {
      await deletePersona(app.api, persona.id);
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    await reload();
  };
  return (
    <>
      <p className={text.quiet}>
        A persona gives a chat a name, a picture, a model and instructions. Choose one in the settings of a chat, or
        start a chat with it here.
      </p>
      {problem && <Alert text={problem} onDismiss={() => setProblem(null)} />}
      <ItemList label="Personas">
        {personas.map((persona) => (
          <Item
            key={persona.id}
            title={
              <span className={text.row}>
                <PersonaPicture persona={persona} /> {persona.name}
              </span>
            }
            facts={[
              persona.model && modelName(models, persona.model),
              persona.use_tools === null ? null : persona.use_tools ? "Tools on" : "Tools off",
              persona.instructions && shorten(persona.instructions),
            ]}
          >
            <ItemAction name="New chat" of={persona.name} onClick={() => chat(persona)} />
            <ItemAction name="Edit" of={persona.name} onClick={() => setEdited(persona)} />
            <ItemAction name="Delete" of={persona.name} onClick={() => void remove(persona)} />
          </Item>
        ))}
      </ItemList>
      <Button onClick={() => setEdited("new")}>Add persona</Button>
      {edited !== null && (
        <PersonaDialog persona={edited === "new" ? null : edited} onClose={() => setEdited(null)} onSaved={reload} />
      )}
    </>
  );
}

const MAX_SHOWN = 120;
const shorten = (value: string) => (value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);

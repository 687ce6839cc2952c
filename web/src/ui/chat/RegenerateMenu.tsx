// Answers a message again, with the same model or with another one.

import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { Menu } from "../widgets/Menu.tsx";
import { focusMessageBox } from "./focus.ts";
import { regenerate } from "./turn-actions.ts";

const MAX_MODELS = 12;

export function RegenerateMenu({ message, thread }: { message: ThreadMessage; thread: Thread }) {
  const app = useApp();
  const { models, agents } = useStore(app.catalog);
  const answerAgain = (model?: string) => {
    focusMessageBox(); // the button is about to go
    void regenerate(app, thread, message.id, model);
  };
  const agent = thread.state.get().session?.agent;
  const isProgram = agents.some((item) => item.name === agent && item.is_program); // it has a model of its own
  const others = isProgram ? [] : models.filter((model) => model.available && model.id !== message.model);
  return (
    <>
      <IconButton name="Regenerate" icon="retry" onClick={() => answerAgain()} />
      {others.length > 0 && (
        <Menu
          name="Regenerate with another model"
          icon="down"
          items={others.slice(0, MAX_MODELS).map(({ id, name }) => ({
            id,
            name,
            icon: "retry",
            run: () => answerAgain(id),
          }))}
        />
      )}
    </>
  );
}

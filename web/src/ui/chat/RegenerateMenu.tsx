// Answers a message again, with the same model or with another one.

import { offeredModels } from "../../core/models.ts";
import type { Thread, ThreadMessage } from "../../core/thread.ts";
import { useApp, useStore } from "../context.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { Menu } from "../widgets/Menu.tsx";
import { focusMessageBox } from "./focus.ts";
import { regenerate } from "./turn-actions.ts";

const MAX_MODELS = 12;

interface Props {
  message: ThreadMessage;
  thread: Thread;
}

export function RegenerateMenu({ message, thread }: Props) {
  const app = useApp();
  const answerAgain = () => {
    focusMessageBox(); // the button is about to go
    void regenerate(app, thread, message.id);
  };
  return (
    <>
      <IconButton name="Regenerate" icon="retry" onClick={answerAgain} />
      <OtherModels message={message} thread={thread} />
    </>
  );
}

/** The models that can answer instead of the one that did, or failed to. */
export function OtherModels({ message, thread, label }: Props & { label?: string }) {
  const app = useApp();
  const { models, agents } = useStore(app.catalog);
  const agent = thread.state.get().session?.agent;
  const isProgram = agents.some((item) => item.name === agent && item.is_program); // it has a model of its own
  const others = isProgram
    ? []
    : offeredModels(models).filter((model) => model.available && model.id !== message.model);
  if (!others.length) return null;
  return (
    <Menu
      name="Regenerate with another model"
      icon="down"
      label={label}
      items={others.slice(0, MAX_MODELS).map(({ id, name }) => ({
        id,
        name,
        icon: "retry",
        run: () => {
          focusMessageBox(); // the button is about to go
          void regenerate(app, thread, message.id, id);
        },
      }))}
    />
  );
}

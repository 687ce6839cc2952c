// Which model, and which agent, answers here.

import { useRef, useState } from "react";
import { useApp, useStore } from "./context.ts";
import { Icon } from "./icons.tsx";
import { type Choice, Picker } from "./Picker.tsx";
import { usePlace } from "./widgets.tsx";

export interface Chosen {
  readonly model: string | null;
  readonly agent: string | null;
}

interface Props {
  chosen: Chosen;
  onChoose: (fields: { model?: string; agent?: string }) => void;
}

export function ModelPicker({ chosen, onChoose }: Props) {
  const { models, agents, defaultModel } = useStore(useApp().catalogue);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePlace(button, box, open);
  const model = chosen.model ?? defaultModel;
  const choices: Choice[] = [
    ...models.map((item) => ({
      id: `model:${item.id}`,
      name: item.name,
      note: item.available ? item.provider : (item.reason ?? "not available"),
      group: "Models",
      disabled: !item.available,
      selected: item.id === model,
    })),
    ...(agents.length > 1
      ? agents.map((item) => ({
          id: `agent:${item.name}`,
          name: item.name,
          group: "Agents",
          selected: item.name === chosen.agent,
        }))
      : []),
  ];
  if (!choices.length) return null;
  const name = models.find((item) => item.id === model)?.name ?? model ?? chosen.agent ?? "Choose a model";
  const choose = ({ id }: Choice) => {
    const [kind, value] = [id.slice(0, 5), id.slice(6)];
    onChoose(kind === "model" ? { model: value } : { agent: value });
    box.current?.hidePopover();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className="pill"
        aria-haspopup="dialog"
        aria-expanded={open}
        title="Model and agent"
        onClick={() => box.current?.togglePopover()}
      >
        <span className="visually-hidden">Model: </span>
        <span className="pill-name">{name}</span>
        <Icon name="down" />
      </button>
      <div
        ref={box}
        className="floating picker-box"
        popover="auto"
        role="dialog"
        aria-label="Model and agent"
        onToggle={(event) => setOpen(event.newState === "open")}
      >
        {open && (
          <Picker label="Find a model" placeholder="Find a model" choices={choices} onChoose={choose} autoFocus />
        )}
      </div>
    </>
  );
}

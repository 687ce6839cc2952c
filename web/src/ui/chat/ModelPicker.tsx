import { useRef, useState } from "react";
import { isUsable, modelName } from "../../core/models.ts";
import { useApp, useStore } from "../context.ts";
import { useProject } from "../projects/use-project.ts";
import { classNames } from "../widgets/class-names.ts";
import { Icon } from "../widgets/icons.tsx";
import { lazyOverlay } from "../widgets/lazy-overlay.tsx";
import popover from "../widgets/popover.module.css";
import text from "../widgets/text.module.css";
import { placePopover, usePopoverPosition } from "../widgets/use-popover-position.ts";
import { focusMessageBox } from "./focus.ts";
import styles from "./ModelPicker.module.css";

interface Selection {
  readonly model: string | null;
  readonly agent: string | null;
  readonly project: string | null;
}
export type ModelChange = { readonly model?: string; readonly agent?: string };

const ModelChoices = lazyOverlay(() => import("./ModelChoices.tsx"));

/** Chooses the model, and the agent if there are several. */
export function ModelPicker({ selected, onChoose }: { selected: Selection; onChoose: (change: ModelChange) => void }) {
  const app = useApp();
  const { models, agents, defaultModel, loaded } = useStore(app.catalog);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  usePopoverPosition(button, box, open);
  const inherited = useProject(selected.project)?.model;
  const model = selected.model ?? inherited ?? defaultModel;
  // An agent that runs as a program has a model of its own; choosing one of ours goes back to the built-in agent. One
  // that is not listed was removed.
  const usesModels = !loaded || agents.some((item) => item.name === selected.agent && !item.is_program);
  if (!models.length && agents.length <= 1) return null;
  const shownModel = model === null ? "Select a model" : modelName(models, model);
  const name = usesModels ? shownModel : selected.agent;
  const missing = usesModels && loaded && model !== null && !isUsable(models, model);
  const resized = () => {
    if (button.current && box.current) placePopover(button.current, box.current);
  };
  const close = () => {
    box.current?.hidePopover();
    focusMessageBox();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={styles.button}
        aria-haspopup="dialog"
        aria-expanded={open}
        title="Model and agent"
        onClick={() => box.current?.togglePopover()}
      >
        <span className={text.visuallyHidden}>Model: </span>
        <span className={text.ellipsis}>{name}</span>
        {missing && <span className={styles.missing}>Unavailable</span>}
        <Icon name="down" />
      </button>
      <div
        ref={box}
        className={classNames(popover.floating, styles.popover)}
        popover="auto"
        role="dialog"
        aria-label="Model and agent"
        onToggle={(event) => {
          const isOpen = event.newState === "open";
          setOpen(isOpen);
          if (isOpen) app.checkCatalog();
        }}
      >
        {open && (
          <ModelChoices
            agent={selected.agent}
            model={model}
            usesModels={usesModels}
            onChoose={onChoose}
            onClose={close}
            onResize={resized}
          />
        )}
      </div>
    </>
  );
}

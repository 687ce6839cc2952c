import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { iconButtonClass } from "./buttons.tsx";
import { classNames } from "./class-names.ts";
import { Icon, type IconName } from "./icons.tsx";
import styles from "./Menu.module.css";
import popover from "./popover.module.css";
import { usePopoverPosition } from "./use-popover-position.ts";

export interface MenuItem {
  /** Where names are not unique. */
  readonly id?: string;
  readonly name: string;
  readonly icon: IconName;
  readonly danger?: boolean;
  readonly run: () => void;
}

interface Props {
  name: string;
  items: readonly MenuItem[];
  /** The icon of its button. */
  icon?: IconName;
}

export function Menu({ name, items, icon = "more" }: Props) {
  const [open, setOpen] = useState(false);
  const [rendered, setRendered] = useState(false); // before it opens, so that its size is known
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  usePopoverPosition(button, box, open);
  useEffect(() => {
    if (open) box.current?.querySelector("button")?.focus();
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(box.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    buttons.at(to % buttons.length)?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={iconButtonClass}
        aria-label={name}
        title={name}
        aria-haspopup="menu"
        aria-expanded={open}
        popoverTarget={id}
      >
        <Icon name={icon} />
      </button>
      <div
        ref={box}
        id={id}
        className={classNames(popover.floating, styles.menu)}
        role="menu"
        aria-label={name}
        popover="auto"
        tabIndex={-1}
        onKeyDown={onKeyDown}
        onBeforeToggle={(event) => event.newState === "open" && setRendered(true)}
        onToggle={(event) => {
          setOpen(event.newState === "open");
          setRendered(event.newState === "open");
        }}
      >
        {(rendered ? items : []).map((item) => (
          <button
            key={item.id ?? item.name}
            type="button"
            role="menuitem"
            className={item.danger ? styles.danger : undefined}
            onClick={() => {
              box.current?.hidePopover();
              item.run();
            }}
          >
            <Icon name={item.icon} />
            {item.name}
          </button>
        ))}
      </div>
    </>
  );
}

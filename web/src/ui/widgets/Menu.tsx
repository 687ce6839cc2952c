import { type KeyboardEvent, type RefObject, useEffect, useId, useRef, useState } from "react";
import { buttonClass, iconButtonClass } from "./buttons.tsx";
import { classNames } from "./class-names.ts";
import { Icon, type IconName } from "./icons.tsx";
import styles from "./Menu.module.css";
import popover from "./popover.module.css";
import { placePopover, usePopoverPosition } from "./use-popover-position.ts";

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
  /** Shown beside the icon; a part of the name. */
  label?: string | undefined;
}

export function Menu({ name, items, icon = "more", label }: Props) {
  const [open, setOpen] = useState(false);
  const [rendered, setRendered] = useState(false); // before it opens, so that its size is known
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  usePopoverPosition(button, box, open);
  useEffect(() => {
    if (open) box.current?.querySelector("button")?.focus();
  }, [open]);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={label ? buttonClass() : iconButtonClass}
        aria-label={name}
        title={name}
        aria-haspopup="menu"
        aria-expanded={open}
        popoverTarget={id}
      >
        {label}
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
        onKeyDown={moveInMenu}
        onBeforeToggle={(event) => event.newState === "open" && setRendered(true)}
        onToggle={(event) => {
          setOpen(event.newState === "open");
          setRendered(event.newState === "open");
        }}
      >
        {rendered && <MenuItems items={items} box={box} />}
      </div>
    </>
  );
}

interface ContextMenuProps {
  name: string;
  items: readonly MenuItem[];
  /** What it is about; it is shown next to this. */
  anchor: HTMLElement;
  onClose: () => void;
}

/** A menu without a button of its own. It is open while it is rendered. */
export function ContextMenu({ name, items, anchor, onClose }: ContextMenuProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const menu = box.current;
    if (!menu) return;
    menu.showPopover();
    placePopover(anchor, menu);
    menu.querySelector("button")?.focus();
  }, [anchor]);
  return (
    <div
      ref={box}
      className={classNames(popover.floating, styles.menu)}
      role="menu"
      aria-label={name}
      popover="auto"
      tabIndex={-1}
      onKeyDown={moveInMenu}
      onToggle={(event) => event.newState === "closed" && onClose()}
    >
      <MenuItems items={items} box={box} />
    </div>
  );
}

function MenuItems({ items, box }: { items: readonly MenuItem[]; box: RefObject<HTMLDivElement | null> }) {
  return items.map((item) => (
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
  ));
}

function moveInMenu(event: KeyboardEvent): void {
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  buttons.at(to % buttons.length)?.focus();
}

// Small parts that several screens share.

import { type ReactNode, type RefObject, useEffect, useId, useRef, useState } from "react";
import { Icon, type IconName } from "./icons.tsx";

interface ButtonProps {
  name: string;
  icon: IconName;
  onClick: () => void;
  className?: string;
  disabled?: boolean;
  pressed?: boolean;
}

/** A button that shows an icon and has its name for everybody else; the name is also its tooltip. */
export function IconButton({ name, icon, onClick, className = "", disabled = false, pressed }: ButtonProps) {
  return (
    <button
      type="button"
      className={`icon-button ${className}`}
      aria-label={name}
      title={name}
      onClick={onClick}
      disabled={disabled}
      aria-pressed={pressed}
    >
      <Icon name={icon} />
    </button>
  );
}

export function CopyButton({ text, name = "Copy" }: { text: () => string; name?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const id = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(id);
  }, [done]);
  const copy = async () => {
    await copyText(text());
    setDone(true);
  };
  return <IconButton name={done ? "Copied" : name} icon={done ? "check" : "copy"} onClick={() => void copy()} />;
}

/** The clipboard needs https or localhost; a selection works everywhere. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(() => undefined);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Where a floating thing goes: beside its button, inside the window. */
export function usePlace(button: RefObject<HTMLElement | null>, box: RefObject<HTMLElement | null>, open: boolean) {
  useEffect(() => {
    const [from, floating] = [button.current, box.current];
    if (!open || !from || !floating) return;
    const at = from.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = floating;
    const below = at.bottom + height + 8 < innerHeight;
    floating.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    floating.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
  }, [open, button, box]);
}

export interface MenuItem {
  readonly name: string;
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly run: () => void;
}

export function Menu({ name, items, icon = "more" }: { name: string; items: readonly MenuItem[]; icon?: IconName }) {
  const [open, setOpen] = useState(false);
  const [drawn, setDrawn] = useState(false); // a little earlier: what is to be placed has its size
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  usePlace(button, box, open);
  useEffect(() => {
    if (open) box.current?.querySelector("button")?.focus();
  }, [open]);
  const move = (event: React.KeyboardEvent) => {
    const buttons = [...(box.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      buttons.at(to % buttons.length)?.focus();
    }
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className="icon-button"
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
        className="floating menu"
        role="menu"
        aria-label={name}
        popover="auto"
        tabIndex={-1}
        onKeyDown={move}
        onBeforeToggle={(event) => event.newState === "open" && setDrawn(true)}
        onToggle={(event) => {
          setOpen(event.newState === "open");
          setDrawn(event.newState === "open");
        }}
      >
        {(drawn ? items : []).map((item) => (
          <button
            key={item.name}
            type="button"
            role="menuitem"
            className={item.danger ? "danger" : ""}
            onClick={() => {
              box.current?.hidePopover();
              item.run();
            }}
          >
            {item.icon && <Icon name={item.icon} />}
            {item.name}
          </button>
        ))}
      </div>
    </>
  );
}

/** Browsers give a modal dialog its focus trap and Escape. */
interface DialogProps {
  name: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

export function Dialog({ name, onClose, children, className = "" }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it; the click is for its backdrop
    <dialog
      ref={box}
      className={`dialog ${className}`}
      aria-label={name}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === box.current) box.current?.close();
      }}
    >
      {children}
    </dialog>
  );
}

export function Spinner({ name }: { name: string }) {
  return (
    <span className="spinner" role="status">
      <span className="visually-hidden">{name}</span>
    </span>
  );
}

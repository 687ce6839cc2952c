import { type MouseEvent, type PointerEvent, type ReactNode, useEffect, useRef } from "react";
import { askConfirmation } from "../dialogs.ts";
import { classNames } from "./class-names.ts";
import styles from "./Dialog.module.css";

interface DialogProps {
  name: string;
  onClose: () => void;
  children: ReactNode;
  className?: string | undefined;
  /** Whether there is something in it that was not saved: Escape and a click outside ask before they close it. */
  edited?: boolean;
}

/** A modal dialog. The browser traps the focus. Escape and a click outside close it. */
export function Dialog({ name, onClose, children, className, edited = false }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const pressedOutside = useRef(false);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const close = () => {
    box.current?.close(); // gives back the focus
    onClose(); // at once: the event of closing comes later, when the dialog may have been opened again
  };
  const leave = async () => {
    const focused = document.activeElement;
    if (!edited || (await askConfirmation("Discard changes?", "You have unsaved changes.", "Discard")).confirmed)
      return close();
    if (focused instanceof HTMLElement) focused.focus();
  };
  const isOutside = ({ target, currentTarget, clientX: x, clientY: y }: MouseEvent) => {
    if (target !== currentTarget) return false; // the backdrop belongs to the dialog, as does its padding
    const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
    return x < left || x > right || y < top || y > bottom;
  };
  return (
    <dialog
      ref={box}
      className={classNames(styles.dialog, className)}
      aria-label={name}
      onClose={onClose}
      onCancel={(event) => {
        if (event.target !== box.current) return;
        event.preventDefault();
        void leave();
      }}
      onKeyDown={(event) => {
        // Not left to the event above: a browser lets a page refuse that only once.
        if (event.key !== "Escape" || event.defaultPrevented || event.nativeEvent.isComposing) return;
        event.preventDefault();
        void leave();
      }}
      onPointerDown={(event: PointerEvent) => {
        pressedOutside.current = isOutside(event);
      }}
      onClick={(event) => {
        if (pressedOutside.current && isOutside(event)) void leave(); // not the end of a selection that began inside
      }}
    >
      {children}
    </dialog>
  );
}

/** The content of a dialog: a heading, then the fields, then the buttons. */
export const dialogBodyClass = styles.body;

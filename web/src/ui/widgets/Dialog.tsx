import { type ReactNode, useEffect, useRef } from "react";
import { classNames } from "./class-names.ts";
import styles from "./Dialog.module.css";

interface DialogProps {
  name: string;
  onClose: () => void;
  children: ReactNode;
  className?: string | undefined;
}

/** A modal dialog. The browser traps the focus and closes it on Escape. */
export function Dialog({ name, onClose, children, className }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it; the click is on the backdrop
    <dialog
      ref={box}
      className={classNames(styles.dialog, className)}
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

/** The content of a dialog: a heading, then the fields, then the buttons. */
export const dialogBodyClass = styles.body;

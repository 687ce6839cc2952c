import { type ButtonHTMLAttributes, type ReactNode, useEffect, useState } from "react";
import styles from "./buttons.module.css";
import { classNames } from "./class-names.ts";
import { Icon, type IconName } from "./icons.tsx";

export type ButtonVariant = "primary" | "danger";

/** Returns the class names of a button, for links that look like one. */
export function buttonClass(variant?: ButtonVariant | undefined, small = false): string {
  return classNames(styles.button, variant && styles[variant], small && styles.small);
}

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: ButtonVariant | undefined;
  small?: boolean;
}

export function Button({ variant, small = false, type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={buttonClass(variant, small)} {...rest} />;
}

/** The buttons at the end of a form. */
export function FormButtons({ children }: { children: ReactNode }) {
  return <div className={styles.formButtons}>{children}</div>;
}

export const iconButtonClass = styles.iconButton;

interface IconButtonProps {
  name: string;
  icon: IconName;
  onClick?: () => void;
  type?: "button" | "submit";
  className?: string | undefined;
  disabled?: boolean;
}

/** A button that shows an icon; its name is the tooltip and what assistive technology reads. */
export function IconButton({ name, icon, className, type = "button", ...rest }: IconButtonProps) {
  return (
    <button type={type} className={classNames(styles.iconButton, className)} aria-label={name} title={name} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

const COPIED_MS = 1500;

export function CopyButton({ text, name = "Copy" }: { text: () => string; name?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const id = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(id);
  }, [copied]);
  const copy = async () => {
    await copyText(text());
    setCopied(true);
  };
  return <IconButton name={copied ? "Copied" : name} icon={copied ? "check" : "copy"} onClick={() => void copy()} />;
}

/** The clipboard API needs https or localhost; copying a selection works everywhere. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(() => undefined);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// The frames of full-page screens: a header with the title, and the content below it.

import { type HTMLAttributes, type ReactNode, useEffect } from "react";
import { openSidebar } from "../sidebar/sidebar-state.ts";
import { IconButton } from "./buttons.tsx";
import { classNames } from "./class-names.ts";
import styles from "./Screen.module.css";
import text from "./text.module.css";

interface HeaderProps {
  title: string;
  note?: string | undefined;
  children?: ReactNode;
}

/** Shows the title, also as the document's, after the note; opens the sidebar on narrow screens; `children` are the actions. */
export function ScreenHeader({ title, note, children }: HeaderProps) {
  useEffect(() => {
    document.title = `${note ? `${note} · ` : ""}${title} · Holdfast`;
  }, [title, note]);
  return (
    <header className={styles.header}>
      <IconButton name="Open sidebar" icon="menu" className={text.onlyNarrow} onClick={openSidebar} />
      <h1 className={classNames(text.ellipsis, styles.title)}>{title}</h1>
      {children}
    </header>
  );
}

/** A screen whose content scrolls below its header. */
export function ScrollingScreen({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={styles.scrolling}>
      <ScreenHeader title={title}>{actions}</ScreenHeader>
      {children}
    </div>
  );
}

/** A screen with one message in its middle. */
export function CenteredScreen(props: HTMLAttributes<HTMLDivElement>) {
  return <div className={styles.centered} {...props} />;
}

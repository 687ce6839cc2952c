// The frames of full-page screens: a header with the title, and the content below it.

import { type HTMLAttributes, type ReactNode, useEffect } from "react";
import { useStore } from "../context.ts";
import { openSidebar, sidebarCollapsed, toggleSidebar } from "../sidebar/sidebar-state.ts";
import { IconButton } from "./buttons.tsx";
import { classNames } from "./class-names.ts";
import styles from "./Screen.module.css";
import text from "./text.module.css";

/** Sets the title of the browser's tab. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
}

interface HeaderProps {
  title: string;
  note?: string | undefined;
  /** Shown before the title. */
  mark?: ReactNode;
  children?: ReactNode;
}

/** Shows the title, also as the document's, after the note; opens the sidebar on narrow screens; `children` are the actions. */
export function ScreenHeader({ title, note, mark, children }: HeaderProps) {
  const collapsed = useStore(sidebarCollapsed);
  usePageTitle(note ? `${note} · ${title}` : title);
  return (
    <header className={styles.header}>
      <IconButton name="Open sidebar" icon="menu" className={text.onlyNarrow} onClick={openSidebar} />
      {collapsed && <IconButton name="Show sidebar" icon="sidebar" className={text.onlyWide} onClick={toggleSidebar} />}
      <h1 className={classNames(text.ellipsis, styles.title)}>
        {mark}
        {title}
      </h1>
      {children}
    </header>
  );
}

/** A screen whose content scrolls below its header. */
export function ScrollingScreen({
  title,
  mark,
  actions,
  children,
}: {
  title: string;
  mark?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={styles.scrolling} data-scroll-container>
      <ScreenHeader title={title} mark={mark}>
        {actions}
      </ScreenHeader>
      {children}
    </div>
  );
}

/** A screen with one message in its middle. */
export function CenteredScreen(props: HTMLAttributes<HTMLDivElement>) {
  return <div className={styles.centered} {...props} />;
}

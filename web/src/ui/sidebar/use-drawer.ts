import { useEffect } from "react";
import { leaveDrawerEntry, openDrawerEntry } from "../router.tsx";
import { closeSidebar } from "./sidebar-state.ts";

/** While the drawer is open it has the focus, and Escape and Back close it. */
export function useDrawer(open: boolean): void {
  useEffect(() => {
    if (!open) return;
    const before = document.activeElement;
    document.querySelector<HTMLElement>("nav [aria-label='Close sidebar']")?.focus();
    openDrawerEntry();
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (!document.querySelector("dialog[open], :popover-open")) closeSidebar();
    };
    addEventListener("keydown", onKeyDown);
    addEventListener("popstate", closeSidebar);
    return () => {
      removeEventListener("keydown", onKeyDown);
      removeEventListener("popstate", closeSidebar);
      leaveDrawerEntry();
      if (before instanceof HTMLElement) before.focus(); // the page is usable again by now
    };
  }, [open]);
}

import { Store } from "../../core/store.ts";

/** Whether the drawer is open. Wide screens always show the sidebar. */
export const sidebarOpen = new Store(false);
export const openSidebar = (): void => sidebarOpen.set(true);
export const closeSidebar = (): void => sidebarOpen.set(false);

const STORAGE_KEY = "holdfast.sidebar";

/** Whether the sidebar is hidden on wide screens. */
export const sidebarCollapsed = new Store(readCollapsed());

export function toggleSidebar(): void {
  const collapsed = !sidebarCollapsed.get();
  sidebarCollapsed.set(collapsed);
  try {
    if (collapsed) localStorage.setItem(STORAGE_KEY, "collapsed");
    else localStorage.removeItem(STORAGE_KEY);
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
}

function readCollapsed(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) === "collapsed";
  } catch {
    return false;
  }
}

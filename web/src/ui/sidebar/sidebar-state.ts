import { Store } from "../../core/store.ts";

/** Whether the drawer is open. Wide screens always show the sidebar. */
export const sidebarOpen = new Store(false);
export const openSidebar = (): void => sidebarOpen.set(true);
export const closeSidebar = (): void => sidebarOpen.set(false);

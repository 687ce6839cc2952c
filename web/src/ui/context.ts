import { createContext, useContext, useSyncExternalStore } from "react";
import type { App } from "../core/app.ts";
import type { Store } from "../core/store.ts";

const AppContext = createContext<App | null>(null);
export const AppProvider = AppContext.Provider;

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("useApp must be used within an AppProvider.");
  return app;
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";

const STORAGE_KEY = "holdfast.theme"; // public/theme.js reads it before the first paint

export function currentTheme(): Theme {
  const { theme } = document.documentElement.dataset;
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
}

/** Whether the page is dark now, by choice or by the system. */
export function useDarkTheme(): boolean {
  return useSyncExternalStore(subscribeToTheme, isDark);
}

const systemIsDark = (): MediaQueryList => matchMedia("(prefers-color-scheme: dark)");

function isDark(): boolean {
  const theme = currentTheme();
  return theme === "system" ? systemIsDark().matches : theme === "dark";
}

function subscribeToTheme(onChange: () => void): () => void {
  const system = systemIsDark();
  const choice = new MutationObserver(onChange);
  system.addEventListener("change", onChange);
  choice.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", onChange);
    choice.disconnect();
  };
}

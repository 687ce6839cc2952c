export type Theme = "light" | "dark" | "system";

export function theme(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

export function setTheme(to: Theme): void {
  if (to === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = to;
  try {
    if (to === "system") localStorage.removeItem("holdfast.theme");
    else localStorage.setItem("holdfast.theme", to);
  } catch {
    // Then it lasts until the page is closed.
  }
}

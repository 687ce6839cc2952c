import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "../core/app.ts";
import { Frame } from "./App.tsx";
import { AppProvider } from "./context.ts";
import { browser } from "./env.ts";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/thread.css";
import "./styles/prose.css";
import "./styles/screens.css";

// After an update the parts that an old page names are gone: load the new page, but not for ever.
addEventListener("vite:preloadError", (event) => {
  const at = Number(sessionStorage.getItem("holdfast.reloaded") ?? 0);
  if (Date.now() - at < 20_000) return;
  event.preventDefault();
  sessionStorage.setItem("holdfast.reloaded", String(Date.now()));
  location.reload();
});

const app = new App(browser);
app.start();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <AppProvider value={app}>
        <Frame />
      </AppProvider>
    </StrictMode>,
  );
}

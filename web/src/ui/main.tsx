import "./global.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "../core/app.ts";
import { AppLayout } from "./AppLayout.tsx";
import { browserEnv } from "./browser-env.ts";
import { AppProvider } from "./context.ts";
import { askPassword } from "./dialogs.ts";

const PRELOAD_DELAY_MS = 1500;

// Nearly every chat needs these chunks; preloading them keeps the page usable when the server goes away.
const preload = () => Promise.all([import("./markdown/Markdown.tsx"), import("./markdown/highlight.ts")]);
setTimeout(() => void preload().catch(() => undefined), PRELOAD_DELAY_MS);

const app = new App(browserEnv);
app.api.askPassword = askPassword;
app.start();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <AppProvider value={app}>
        <AppLayout />
      </AppProvider>
    </StrictMode>,
  );
}

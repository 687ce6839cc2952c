import "./global.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "../core/app.ts";
import { AppLayout } from "./AppLayout.tsx";
import { browserEnv } from "./browser-env.ts";
import { AppProvider } from "./context.ts";
import { askPassword } from "./dialogs.ts";
import { ErrorBoundary } from "./ErrorBoundary.tsx";
import { preloadOverlays } from "./widgets/lazy-overlay.tsx";

const PRELOAD_DELAY_MS = 1500;

// Nearly every chat needs these chunks; preloading them keeps the page usable when the server goes away.
const preload = () => Promise.all([import("./markdown/Markdown.tsx"), import("./markdown/highlight.ts")]);
setTimeout(() => {
  void preload().catch(() => undefined);
  preloadOverlaysOnline();
  void import("./notifications/start.ts").then(
    ({ startNotifications }) => startNotifications(app),
    () => undefined,
  );
}, PRELOAD_DELAY_MS);

const app = new App(browserEnv);
app.api.askPassword = askPassword;
app.start();

/** Not while the server is away: what is needed then is tried until it is there. */
function preloadOverlaysOnline(): void {
  if (app.connection.get() === "online") return preloadOverlays();
  const stop = app.connection.subscribe(() => {
    if (app.connection.get() !== "online") return;
    stop();
    preloadOverlays();
  });
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <AppProvider value={app}>
          <AppLayout />
        </AppProvider>
      </ErrorBoundary>
    </StrictMode>,
  );
}

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

// Nearly every chat needs these; when the server goes away they should be here already.
setTimeout(() => void Promise.all([import("./Markdown.tsx"), import("./highlight.ts")]).catch(() => undefined), 1500);

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

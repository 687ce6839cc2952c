// The frame: sidebar, screen, and what lies over both.

import { Component, type ReactNode, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { Chat, ProblemBar } from "./Chat.tsx";
import { useApp, useStore } from "./context.ts";
import { lazily } from "./lazily.ts";
import { News } from "./News.tsx";
import Palette from "./Palette.tsx";
import { QuestionDialog } from "./QuestionDialog.tsx";
import { placeOf, usePath } from "./router.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { sidebarOpen } from "./shell.ts";
import { Spinner } from "./widgets.tsx";

const Activity = lazily(() => import("./Activity.tsx"));
const Compare = lazily(() => import("./Compare.tsx"));
const Recorder = lazily(() => import("./Recorder.tsx"));
const Settings = lazily(() => import("./Settings.tsx"));

export function Frame() {
  const path = usePath();
  const open = useStore(sidebarOpen);
  const narrow = useNarrow();
  const place = placeOf(path);
  const [palette, setPalette] = useState(false);
  useShortcut(() => setPalette((now) => !now));
  useEffect(() => {
    if (place.screen === "chat" && place.sid) remember(place.sid);
  });
  return (
    <div className="app">
      <a className="skip" href="#main">
        Skip to the conversation
      </a>
      <Sidebar inert={narrow && !open} />
      {narrow && open && (
        <button type="button" className="backdrop" aria-label="Close sessions" onClick={() => sidebarOpen.set(false)} />
      )}
      <main id="main" inert={narrow && open}>
        <Banner />
        <Refused />
        <Fence key={path}>
          <Suspense
            fallback={
              <div className="screen empty">
                <Spinner name="Loading" />
              </div>
            }
          >
            {place.screen === "chat" && <Chat sid={place.sid} />}
            {place.screen === "compare" && <Compare />}
            {place.screen === "activity" && <Activity />}
            {place.screen === "settings" && <Settings />}
            {place.screen === "recorder" && <Recorder key={place.rid} rid={place.rid} />}
          </Suspense>
        </Fence>
      </main>
      <QuestionDialog />
      <News />
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}

/** A lost server is said so, and so is its return: by going away. */
function Banner() {
  const connection = useStore(useApp().connection);
  if (connection !== "lost") return null;
  return (
    <div className="banner" role="status">
      <span className="pulse" aria-hidden="true" />
      The server cannot be reached. Nothing is lost; this page goes on by itself when it is back.
    </div>
  );
}

function Refused() {
  const { problem } = useApp();
  const told = useStore(problem);
  return told && <ProblemBar text={told} onClose={() => problem.set(null)} />;
}

function remember(sid: string): void {
  try {
    sessionStorage.setItem("holdfast.last", sid);
  } catch {
    // Then a new chat does not say which one it follows.
  }
}

function useNarrow(): boolean {
  const query = matchMedia("(max-width: 760px)");
  return useSyncExternalStore(
    (changed) => {
      query.addEventListener("change", changed);
      return () => query.removeEventListener("change", changed);
    },
    () => query.matches,
  );
}

function useShortcut(toggle: () => void): void {
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        toggle();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
}

/** A bug in one screen leaves the others, and says what to do. */
class Fence extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };
  static getDerivedStateFromError() {
    return { broken: true };
  }
  override render() {
    if (!this.state.broken) return this.props.children;
    return (
      <div className="screen empty" role="alert">
        <h1>This page met something it did not expect</h1>
        <p>Your conversations are safe on the server.</p>
        <button type="button" className="button primary" onClick={() => location.reload()}>
          Load it again
        </button>
      </div>
    );
  }
}

// The page around every screen: sidebar, banners, dialogs and the command palette.

import { Suspense, useEffect, useState } from "react";
import styles from "./AppLayout.module.css";
import { Chat } from "./chat/Chat.tsx";
import { openFind } from "./chat/find-state.ts";
import { rememberSession } from "./chat/last-session.ts";
import { closeLightbox, lightbox } from "./chat/lightbox-state.ts";
import { PendingChat } from "./chat/PendingChat.tsx";
import { printChat } from "./chat/print-chat.ts";
import { preventFileNavigation } from "./chat/use-file-drop.ts";
import { useApp, useStore } from "./context.ts";
import { cancelDialogs, dialogRequests } from "./dialogs.ts";
import { ErrorBoundary } from "./ErrorBoundary.tsx";
import { HiddenTabNotice } from "./HiddenTabNotice.tsx";
import { lazyComponent } from "./lazy-load.ts";
import { openNewChat } from "./open-new-chat.ts";
import { navigate, parseRoute, type Route, usePath } from "./router.tsx";
import { Setup, SetupGate } from "./setup/SetupGate.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { SessionMenu } from "./sidebar/SessionMenu.tsx";
import { Sidebar } from "./sidebar/Sidebar.tsx";
import { closeSidebar, openSidebar, sidebarCollapsed, sidebarOpen, toggleSidebar } from "./sidebar/sidebar-state.ts";
import { useDrawer } from "./sidebar/use-drawer.ts";
import { Alert } from "./widgets/Alert.tsx";
import { Button } from "./widgets/buttons.tsx";
import { lazyOverlay } from "./widgets/lazy-overlay.tsx";
import { PulseDot } from "./widgets/PulseDot.tsx";
import { CenteredScreen, usePageTitle } from "./widgets/Screen.tsx";
import { Spinner } from "./widgets/Spinner.tsx";
import { ToastBox } from "./widgets/ToastBox.tsx";
import { useMediaQuery } from "./widgets/use-media-query.ts";

const Activity = lazyComponent(() => import("./activity/Activity.tsx"));
const Compare = lazyComponent(() => import("./compare/Compare.tsx"));
const FlightRecorder = lazyComponent(() => import("./recorder/FlightRecorder.tsx"));
const ProjectScreen = lazyComponent(() => import("./projects/ProjectScreen.tsx"));
const Projects = lazyComponent(() => import("./projects/Projects.tsx"));
const Settings = lazyComponent(() => import("./settings/Settings.tsx"));
const CommandPalette = lazyOverlay(() => import("./CommandPalette.tsx"));
const Lightbox = lazyOverlay(() => import("./chat/Lightbox.tsx"), closeLightbox);
const PromptDialog = lazyOverlay(() => import("./widgets/PromptDialog.tsx"), cancelDialogs);
const ShortcutsDialog = lazyOverlay(() => import("./ShortcutsDialog.tsx"));

export function AppLayout() {
  const path = usePath();
  const route = parseRoute(path);
  const narrow = useMediaQuery("(max-width: 760px)");
  const drawerOpen = useStore(sidebarOpen);
  const app = useApp();
  const connection = useStore(app.connection);
  const { toasts } = app;
  const [palette, setPalette] = useState(false);
  const [shortcuts, setShortcuts] = useState(false);
  const collapsed = useStore(sidebarCollapsed);
  const sid = route.screen === "chat" ? route.sid : null;
  useEffect(() => {
    if (sid) rememberSession(sid);
  }, [sid]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs on every navigation
  useEffect(() => toasts.leaveChat(sid), [toasts, sid, path]);
  useEffect(preventFileNavigation, []);
  useDrawer(narrow && drawerOpen);
  useShortcuts({
    onPalette: () => setPalette((open) => !open),
    onShortcuts: () => setShortcuts(true),
    onFind: openFind,
    onPrint: () => {
      const thread = app.thread.get();
      if (thread) printChat(app, thread.sid);
    },
    onNewChat: () => openNewChat(app),
    onSidebar: () => (narrow ? openSidebar() : toggleSidebar()),
  });
  return (
    <div className={styles.layout} data-connection={connection}>
      <a className={styles.skipLink} href="#main">
        Skip to content
      </a>
      <Sidebar inert={narrow && !drawerOpen} collapsed={!narrow && collapsed} />
      {narrow && drawerOpen && (
        <button type="button" className={styles.backdrop} aria-label="Close sidebar" onClick={closeSidebar} />
      )}
      <div className={styles.content}>
        <main id="main" className={styles.main} inert={narrow && drawerOpen}>
          <ConnectionBanner />
          <ActionError />
          <ErrorBoundary key={path}>
            <Suspense
              fallback={
                <CenteredScreen>
                  <Spinner name="Loading" />
                </CenteredScreen>
              }
            >
              <CurrentScreen route={route} />
            </Suspense>
          </ErrorBoundary>
        </main>
        <ToastBox />
      </div>
      <RequestedOverlays />
      <HiddenTabNotice />
      {palette && <CommandPalette onClose={() => setPalette(false)} onShortcuts={() => setShortcuts(true)} />}
      {shortcuts && <ShortcutsDialog onClose={() => setShortcuts(false)} />}
    </div>
  );
}

/** What any part of the page can ask for. */
function RequestedOverlays() {
  const asking = useStore(dialogRequests).length > 0;
  const showing = useStore(lightbox) !== null;
  return (
    <>
      {asking && <PromptDialog />}
      {showing && <Lightbox />}
    </>
  );
}

function CurrentScreen({ route }: { route: Route }) {
  switch (route.screen) {
    case "chat":
      return route.sid === null ? (
        <SetupGate>
          <Chat sid={null} />
        </SetupGate>
      ) : (
        <Chat sid={route.sid} />
      );
    case "pending-chat":
      return <PendingChat messageKey={route.key} />;
    case "projects":
      return <Projects />;
    case "project":
      return <ProjectScreen key={route.id} id={route.id} ChatMenu={SessionMenu} />;
    case "compare":
      return <Compare />;
    case "activity":
      return <Activity />;
    case "settings":
      return <Settings />;
    case "setup":
      return <Setup />;
    case "not-found":
      return <PageNotFound />;
    case "recorder":
      return <FlightRecorder key={route.rid} rid={route.rid} />;
  }
}

function PageNotFound() {
  usePageTitle("Page not found");
  return (
    <CenteredScreen>
      <h1>Page not found</h1>
      <p>This page doesn’t exist.</p>
      <Button variant="primary" onClick={() => navigate("/")}>
        New chat
      </Button>
    </CenteredScreen>
  );
}

function ConnectionBanner() {
  const connection = useStore(useApp().connection);
  if (connection !== "lost" && connection !== "polling") return null;
  return (
    <div className={styles.banner} role="status">
      <PulseDot />
      {connection === "lost"
        ? "Connection lost. Reconnecting…"
        : "Live updates are blocked. Checking for new messages every few seconds."}
    </div>
  );
}

function ActionError() {
  const { problem } = useApp();
  const text = useStore(problem);
  return text && <Alert text={text} onDismiss={() => problem.set(null)} />;
}

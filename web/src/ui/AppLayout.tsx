// The page around every screen: sidebar, banners, dialogs and the command palette.

import { Suspense, useEffect, useState, useSyncExternalStore } from "react";
import styles from "./AppLayout.module.css";
import { BackgroundNotifications } from "./BackgroundNotifications.tsx";
import { CommandPalette } from "./CommandPalette.tsx";
import { Chat } from "./chat/Chat.tsx";
import { rememberSession } from "./chat/last-session.ts";
import { PendingChat } from "./chat/PendingChat.tsx";
import { preventFileNavigation } from "./chat/use-file-drop.ts";
import { useApp, useStore } from "./context.ts";
import { ErrorBoundary } from "./ErrorBoundary.tsx";
import { lazyComponent } from "./lazy-load.ts";
import { navigate, parseRoute, type Route, usePath } from "./router.tsx";
import { Setup, SetupGate } from "./setup/SetupGate.tsx";
import { Sidebar } from "./sidebar/Sidebar.tsx";
import { closeSidebar, sidebarOpen } from "./sidebar/sidebar-state.ts";
import { Alert } from "./widgets/Alert.tsx";
import { Button } from "./widgets/buttons.tsx";
import { PromptDialog } from "./widgets/PromptDialog.tsx";
import { PulseDot } from "./widgets/PulseDot.tsx";
import { CenteredScreen } from "./widgets/Screen.tsx";
import { Spinner } from "./widgets/Spinner.tsx";
import { ToastBox } from "./widgets/ToastBox.tsx";

const Activity = lazyComponent(() => import("./activity/Activity.tsx"));
const Compare = lazyComponent(() => import("./compare/Compare.tsx"));
const FlightRecorder = lazyComponent(() => import("./recorder/FlightRecorder.tsx"));
const Settings = lazyComponent(() => import("./settings/Settings.tsx"));

export function AppLayout() {
  const path = usePath();
  const route = parseRoute(path);
  const narrow = useMediaQuery("(max-width: 760px)");
  const drawerOpen = useStore(sidebarOpen);
  const connection = useStore(useApp().connection);
  const [palette, setPalette] = useState(false);
  const sid = route.screen === "chat" ? route.sid : null;
  useEffect(() => {
    if (sid) rememberSession(sid);
  }, [sid]);
  useEffect(preventFileNavigation, []);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setPalette((open) => !open);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <div className={styles.layout} data-connection={connection}>
      <a className={styles.skipLink} href="#main">
        Skip to content
      </a>
      <Sidebar inert={narrow && !drawerOpen} />
      {narrow && drawerOpen && (
        <button type="button" className={styles.backdrop} aria-label="Close sidebar" onClick={closeSidebar} />
      )}
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
      <PromptDialog />
      <ToastBox />
      <BackgroundNotifications />
      {palette && <CommandPalette onClose={() => setPalette(false)} />}
    </div>
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
  return (
    <CenteredScreen>
      <h1>Page not found</h1>
      <p>Nothing is at this address.</p>
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

function useMediaQuery(text: string): boolean {
  const query = matchMedia(text);
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}

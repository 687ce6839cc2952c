// Registers the service worker and answers its questions: which chat is shown here, and to open another one.

import { rootPath, withoutRoot, withRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";

type Question = { readonly ask: "shown"; readonly session: string } | { readonly ask: "open"; readonly path: string };

/** Null where the browser has none: without HTTPS, or in a private window. */
export async function registerServiceWorker(): Promise<ServiceWorkerRegistration | null> {
  if (!("serviceWorker" in navigator)) return null;
  const scope = `${rootPath}/`;
  return navigator.serviceWorker
    .register(withRoot("/static/app/service-worker.js"), { scope, updateViaCache: "none" })
    .catch(() => null);
}

export function answerServiceWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", ({ data, ports }: MessageEvent<Question>) => {
    if (data.ask === "open") navigate(data.path);
    ports[0]?.postMessage(data.ask === "open" || isShown(data.session));
  });
  navigator.serviceWorker.startMessages();
}

function isShown(session: string): boolean {
  return document.visibilityState === "visible" && withoutRoot(location.pathname) === `/c/${session}`;
}

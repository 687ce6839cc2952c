// The service worker: shows notifications, and a page while the server cannot be reached. It stores nothing, so it cannot
// show an earlier version of the app or of a chat: a navigation goes to the server first, everything else past it.

import { offlinePage } from "./offline-page.ts";

declare const self: ServiceWorkerGlobalScope;

/** As the server sends it (`encode_payload` in `engine/push_sender.py`). */
interface PushContent {
  readonly kind: "done" | "failed" | "approval" | "test";
  readonly tag: string;
  readonly session: string | null;
  readonly title: string;
  /** Whether the approval is an answer in words. */
  readonly asks?: boolean;
}

/** The static routing of newer browsers. */
interface RoutingInstallEvent extends ExtendableEvent {
  addRoutes?(rules: readonly object[]): Promise<void>;
}

/** How long a page has to answer; one that is frozen does not. */
const ANSWER_MS = 500;
const TEXTS: Readonly<Record<PushContent["kind"], string>> = {
  done: "Answer ready",
  failed: "The answer stopped early",
  approval: "Needs your approval",
  test: "Notifications work on this device",
};
const root = new URL(self.registration.scope).pathname;

self.addEventListener("install", (event) => {
  // The browser fetches everything but pages itself, without starting this worker.
  const others = { condition: { not: { requestMode: "navigate" } }, source: "network" };
  event.waitUntil((event as RoutingInstallEvent).addRoutes?.([others]).catch(() => undefined) ?? Promise.resolve());
  void self.skipWaiting(); // nothing of an earlier version is kept that a page could need
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate" || !isAppPage(new URL(event.request.url))) return;
  event.respondWith(fetch(event.request).catch(() => offlinePage(root)));
});

/** Whether the app is at the address; others are downloads and the like. */
function isAppPage({ origin, pathname }: URL): boolean {
  const path = pathname.startsWith(root) ? pathname.slice(root.length) : "";
  return origin === location.origin && !/^(api|v1|static)\//.test(path);
}

self.addEventListener("push", (event) => {
  const content = parse(event.data);
  if (content) event.waitUntil(show(content));
});

function parse(data: PushMessageData | null): PushContent | null {
  try {
    const content = data?.json() as Partial<PushContent> | null;
    if (!content?.kind || !(content.kind in TEXTS) || !content.tag) return null;
    return {
      kind: content.kind,
      tag: content.tag,
      session: content.session ?? null,
      title: content.title ?? "",
      asks: content.asks === true,
    };
  } catch {
    return null;
  }
}

async function show({ kind, tag, session, title, asks }: PushContent): Promise<void> {
  const seen = session !== null && (await isShown(session));
  if (seen && !(await mustShow())) return;
  await self.registration.showNotification(title || "Holdfast", {
    body: asks ? "Asks you something" : TEXTS[kind],
    tag,
    icon: `${root}static/app/icon-192.png`,
    badge: `${root}static/app/badge-96.png`,
    silent: seen,
    requireInteraction: kind === "approval",
    data: { session },
  });
}

/** Safari ends a subscription after a few messages without a notification, even if the app is open. */
async function mustShow(): Promise<boolean> {
  const subscription = await self.registration.pushManager.getSubscription();
  return subscription !== null && new URL(subscription.endpoint).hostname.endsWith("push.apple.com");
}

/** Whether a page that is visible shows the chat. */
async function isShown(session: string): Promise<boolean> {
  const pages = (await windows()).filter((page) => page.visibilityState === "visible");
  const answers = await Promise.all(pages.map((page) => ask(page, { ask: "shown", session })));
  return answers.includes(true);
}

const windows = () => self.clients.matchAll({ type: "window", includeUncontrolled: true });

/** What the page answers; false if it does not. */
function ask(page: WindowClient, message: object): Promise<unknown> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    setTimeout(resolve, ANSWER_MS, false);
    port1.onmessage = ({ data }) => resolve(data);
    page.postMessage(message, [port2]);
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { session } = event.notification.data as { session: string | null };
  event.waitUntil(open(session === null ? "settings#notifications" : `c/${session}`));
});

/** Opens a part of the app in a page that is there, or in a new one. Approving and denying is done there. */
async function open(path: string): Promise<void> {
  const pages = await windows();
  const page = pages.find(({ focused }) => focused) ?? pages[0];
  if (!page) return void (await self.clients.openWindow(root + path));
  const focused = await page.focus().catch(() => page);
  if (!(await ask(focused, { ask: "open", path: `/${path}` }))) await self.clients.openWindow(root + path);
}

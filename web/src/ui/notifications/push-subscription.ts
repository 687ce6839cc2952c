// This browser's subscription to notifications.

import { type Api, ApiError } from "../../core/api.ts";
import type { PushDeviceResponse, PushKeyResponse } from "../../core/api-types.ts";
import type { Env } from "../../core/env.ts";
import { withRoot } from "../root-path.ts";
import { ownDevice, rememberDevice } from "./own-device.ts";
import { registerServiceWorker } from "./service-worker-client.ts";

export function isSupported(): boolean {
  return "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
}

/** Subscribes this browser, and tells the server. The permission to show notifications must have been granted. */
export async function turnOn(env: Env, api: Api): Promise<PushDeviceResponse> {
  const registration = await registerServiceWorker();
  if (!registration)
    throw new Error("This browser does not allow notifications here. Try a window that is not private.");
  const { public_key } = await api.get<PushKeyResponse>("/api/push/key");
  await activation(registration);
  const { endpoint, keys } = (await subscribe(registration.pushManager, decode(public_key))).toJSON();
  const device = await api.post<PushDeviceResponse>("/api/push/subscriptions", { endpoint, keys });
  rememberDevice(env, device.id);
  return device;
}

/** Not `navigator.serviceWorker.ready`: the page may be at the root path itself, which is not below the scope. */
function activation({ active, waiting, installing }: ServiceWorkerRegistration): Promise<void> {
  const worker = active ?? waiting ?? installing;
  const isDone = () => worker === null || worker.state === "activated" || worker.state === "redundant";
  return new Promise((resolve) => {
    if (isDone()) return resolve();
    worker?.addEventListener("statechange", () => isDone() && resolve());
  });
}

async function subscribe(manager: PushManager, key: Uint8Array<ArrayBuffer>): Promise<PushSubscription> {
  const existing = await manager.getSubscription();
  if (existing && sameBytes(existing.options.applicationServerKey, key)) return existing;
  await existing?.unsubscribe(); // it belongs to another key, as after a backup was restored
  try {
    return await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotAllowedError") throw error;
    throw new Error("This browser could not reach its push service. Check the connection, and try again.");
  }
}

export async function turnOff(env: Env, api: Api): Promise<void> {
  const id = ownDevice(env);
  rememberDevice(env, null);
  const registration = await navigator.serviceWorker.getRegistration(withRoot("/"));
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  if (id !== null) await api.call("DELETE", `/api/push/subscriptions/${id}`).catch(ignoreMissing);
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}

/** Tells the server again at each start of the app: the browser may have renewed the subscription, or the login. */
export async function renew(env: Env, api: Api): Promise<void> {
  if (ownDevice(env) === null || !isSupported()) return;
  if (Notification.permission !== "granted") return rememberDevice(env, null);
  await turnOn(env, api).catch(() => undefined);
}

function sameBytes(a: ArrayBuffer | null, b: Uint8Array): boolean {
  const bytes = a && new Uint8Array(a);
  return bytes?.length === b.length && bytes.every((byte, at) => byte === b[at]);
}

function decode(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

// Starts what notifications need, after the page is shown.

import type { App } from "../../core/app.ts";
import { renew } from "./push-subscription.ts";
import { answerServiceWorker, registerServiceWorker } from "./service-worker-client.ts";

export function startNotifications({ env, api }: App): void {
  answerServiceWorker();
  void registerServiceWorker();
  void renew(env, api);
}

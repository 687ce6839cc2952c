// Reports a run that ended or waits while the tab is hidden, in the title and as a notification. A device with
// notifications of its own (notifications/push-subscription.ts) shows those instead. Which runs: hidden-tab-monitor.ts.

import { useEffect, useRef } from "react";
import type { HiddenTabUpdate } from "../core/hidden-tab-monitor.ts";
import { useApp, useStore } from "./context.ts";
import { ownDevice } from "./notifications/own-device.ts";
import { withRoot } from "./root-path.ts";

function describe({ kind, run }: HiddenTabUpdate): string {
  if (kind === "waits")
    return run.waits_for === "answer" ? "The model asks you something" : "A tool needs your approval";
  return run.status === "complete" ? "Your answer is ready" : "Your answer stopped early";
}

export function HiddenTabNotice() {
  const { hiddenTab, env } = useApp();
  const updates = useStore(hiddenTab.updates);
  const originalTitle = useRef<string | null>(null);
  useEffect(() => {
    const last = updates.at(-1);
    if (!last) {
      if (originalTitle.current !== null) document.title = originalTitle.current;
      originalTitle.current = null;
      return;
    }
    const body = describe(last);
    originalTitle.current ??= document.title;
    document.title = `● ${body} · Holdfast`;
    if (ownDevice(env) === null && "Notification" in window && Notification.permission === "granted") {
      const notification = new Notification("Holdfast", { body, tag: last.run.id, icon: withRoot("/static/icon.svg") });
      notification.onclick = () => window.focus();
    }
  }, [updates, env]);
  return null;
}

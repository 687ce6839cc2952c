// U7: a run that ended or asks while nobody looked is in the title, and in a notification where that is allowed.

import { useEffect, useRef } from "react";
import type { News as Item } from "../core/watch.ts";
import { useApp, useStore } from "./context.ts";

function words(item: Item): string {
  if (item.what === "asks") return "A tool asks for your permission";
  return item.run.status === "complete" ? "An answer is ready" : "An answer has stopped";
}

export function News() {
  const news = useStore(useApp().watch.news);
  const title = useRef<string | null>(null);
  useEffect(() => {
    const last = news.at(-1);
    if (!last) {
      if (title.current !== null) document.title = title.current;
      title.current = null;
      return;
    }
    title.current ??= document.title;
    document.title = `● ${words(last)} · Holdfast`;
    if ("Notification" in window && Notification.permission === "granted") {
      const note = new Notification("Holdfast", { body: words(last), tag: last.run.id, icon: "/static/icon.svg" });
      note.onclick = () => window.focus();
    }
  }, [news]);
  return null;
}

// Prints a whole chat. The page renders only the messages that are near, so what is printed is the chat's export as HTML.

import type { App } from "../../core/app.ts";
import { withRoot } from "../root-path.ts";

const FRAME_ID = "printed-chat";

export function printChat({ toasts }: App, sid: string): void {
  document.getElementById(FRAME_ID)?.remove();
  toasts.show("Preparing to print…");
  const frame = document.createElement("iframe");
  frame.id = FRAME_ID;
  frame.title = "Printed chat";
  frame.tabIndex = -1;
  frame.setAttribute("aria-hidden", "true");
  Object.assign(frame.style, { position: "fixed", width: "0", height: "0", border: "0" }); // a hidden one is not printed
  frame.onload = () => {
    const page = frame.contentWindow;
    if (!page?.document.querySelector("main")) {
      frame.remove();
      return toasts.show("The chat could not be printed");
    }
    toasts.dismiss();
    page.addEventListener("afterprint", () => frame.remove());
    page.print();
  };
  frame.src = withRoot(`/api/sessions/${sid}/export?format=html&inline=true`);
  document.body.append(frame);
}

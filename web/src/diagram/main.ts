// Draws one diagram, in a frame of its own: Mermaid writes styles as text, which the app's policy forbids. This frame's
// policy allows that, and neither other hosts, nor scripts that are written into the page, nor leaving it.

import mermaid from "mermaid";
import "./diagram.css";

interface Order {
  readonly source: string;
  readonly dark: boolean;
}

const place = document.getElementById("diagram") as HTMLElement;
let drawn = 0;

async function draw({ source, dark }: Order): Promise<void> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    theme: dark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
  });
  try {
    const { svg } = await mermaid.render(`d${++drawn}`, source);
    place.innerHTML = svg;
    for (const link of place.querySelectorAll("a")) link.replaceWith(...link.childNodes); // a picture leads nowhere
    parent.postMessage({ height: Math.ceil(place.scrollHeight) }, location.origin);
  } catch {
    parent.postMessage({ failed: true }, location.origin);
  }
}

addEventListener("message", (event: MessageEvent<Order>) => {
  if (event.source === parent && event.origin === location.origin) void draw(event.data);
});
parent.postMessage({ ready: true }, location.origin);

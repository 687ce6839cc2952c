// Renders one diagram in an iframe: Mermaid needs inline styles, which the app's content security policy forbids. The
// policy of this iframe allows them, but no other hosts and no inline scripts, and its sandbox gives it an origin of its
// own: nothing in it can reach the app, its storage or its API.

import "./diagram.css";

interface RenderRequest {
  readonly source: string;
  readonly dark: boolean;
}

const container = document.getElementById("diagram") as HTMLElement;
let renders = 0;

async function render({ source, dark }: RenderRequest): Promise<void> {
  const { default: mermaid } = await import("mermaid");
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    theme: dark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
  });
  try {
    const { svg } = await mermaid.render(`d${++renders}`, source);
    container.innerHTML = svg;
    for (const link of container.querySelectorAll("a")) link.replaceWith(...link.childNodes); // diagrams have no links
    parent.postMessage({ height: Math.ceil(container.scrollHeight) }, "*");
  } catch {
    parent.postMessage({ failed: true }, "*");
  }
}

addEventListener("message", (event: MessageEvent<RenderRequest>) => {
  if (event.source === parent) void render(event.data);
});
parent.postMessage({ ready: true }, "*");

// The page that is shown instead of the app while the server cannot be reached. It loads the app when the server is back.

const STYLE = `
:root { color-scheme: light dark; --ink: #14212b; --paper: #f6f4ef; --accent: #0b6e6e; --muted: #55626c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e4da; --paper: #10181e; --accent: #4fc3bd; --muted: #9aa7b0; }
}
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
main { display: grid; place-content: center; justify-items: center; gap: 0.75rem; min-height: 100vh; min-height: 100dvh;
  padding: 1.5rem; box-sizing: border-box; text-align: center; }
h1 { margin: 0.25rem 0 0; font-size: 1.35rem; line-height: 1.25; }
p { max-width: 26rem; margin: 0; color: var(--muted); }
a { margin-top: 0.5rem; padding: 0.6rem 1.2rem; border-radius: 9px; font-weight: 600; text-decoration: none;
  color: var(--paper); background: var(--accent); }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }`;

const ICON = `<svg viewBox="0 0 64 64" width="56" height="56" aria-hidden="true">
<rect width="64" height="64" rx="14" fill="#0b6e6e"/>
<path d="M22 14v36M42 14v36M22 32c6-7 14 7 20 0" fill="none" stroke="#f6f4ef" stroke-width="6" stroke-linecap="round"/>
</svg>`;

const RETRY_MS = 3000;

/** `root`: the path of the app, with a slash at its end. It consists of letters, digits and . _ ~ - (`root_path`). */
export function offlinePage(root: string): Response {
  const script = `
const look = () => fetch("${root}healthz", { cache: "no-store" }).then(({ ok }) => ok && location.reload(), () => {});
setInterval(look, ${RETRY_MS});
addEventListener("online", look);`;
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Offline · Holdfast</title><style>${STYLE}</style></head>
<body><main>${ICON}<h1>Can’t reach the server</h1>
<p role="status">Check your connection. Your chats are safe on the server, and this page reloads when it is back.</p>
<a href="">Try again</a></main><script>${script}</script></body>
</html>`;
  // The page is constant: nothing in it comes from anywhere else.
  const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
  const headers = { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy };
  return new Response(html, { status: 503, headers });
}

// A message on its way: shown at once, replaced by the server's own when that is there.

import type { Outbox, Outgoing } from "../core/outbox.ts";
import { FileCard } from "./parts.tsx";

export function OutgoingView({ item, outbox }: { item: Outgoing; outbox: Outbox }) {
  const refused = item.state === "refused";
  return (
    <article className={`message user outgoing ${item.state}`} aria-label="You">
      <div className="bubble">
        {item.files.map((file) => (
          <FileCard key={file.file_id} part={file} />
        ))}
        {item.text && <p className="plain said">{item.text}</p>}
      </div>
      <footer className="actions always" role={refused ? "alert" : "status"}>
        <span className={refused ? "bad" : "quiet"}>{progress(item)}</span>
        {refused && (
          <>
            <button type="button" className="button small" onClick={() => outbox.again(item.key)}>
              Send again
            </button>
            <button type="button" className="button small" onClick={() => outbox.drop(item.key)}>
              Discard
            </button>
          </>
        )}
      </footer>
    </article>
  );
}

function progress(item: Outgoing): string {
  if (item.state === "refused") return `Not sent: ${item.problem}`;
  if (item.problem) return "Waiting for the server; it will be sent when it is back.";
  return item.state === "sending" ? "Sending…" : "";
}

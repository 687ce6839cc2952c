// An incremental parser for server-sent events.

export interface Frame {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

export class SseParser {
  private readonly decoder = new TextDecoder();
  private rest = "";

  /** Returns the frames completed by `bytes`. Comments yield none. */
  push(bytes: Uint8Array): Frame[] {
    this.rest += this.decoder.decode(bytes, { stream: true });
    const end = this.rest.lastIndexOf("\n\n");
    if (end < 0) return [];
    const complete = this.rest.slice(0, end);
    this.rest = this.rest.slice(end + 2);
    return complete.split("\n\n").flatMap(parseBlock);
  }
}

function parseBlock(block: string): Frame[] {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    const name = line.slice(0, colon);
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  if (data.length) return [{ id, event, data: data.join("\n") }];
  return id === null ? [] : [{ id, event: "", data: "" }]; // only moves the cursor
}

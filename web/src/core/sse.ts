// Server-sent events from bytes: a parser that keeps what is unfinished between reads.

export interface Frame {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

export class Parser {
  private readonly decoder = new TextDecoder();
  private rest = "";

  /** The frames that are complete now. Comments are no frames. */
  push(bytes: Uint8Array): Frame[] {
    this.rest += this.decoder.decode(bytes, { stream: true });
    const end = this.rest.lastIndexOf("\n\n");
    if (end < 0) return [];
    const whole = this.rest.slice(0, end);
    this.rest = this.rest.slice(end + 2);
    return whole.split("\n\n").flatMap(frame);
  }
}

function frame(block: string): Frame[] {
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
  return id === null ? [] : [{ id, event: "", data: "" }]; // only a place to come back to
}

// The change feed, once for all tabs of a browser: it allows six connections in all (U6). The tab that leads holds the
// line and tells the others; a hidden tab does not lead. Where tabs cannot agree, each has a line of its own.

import type { Channel, Env } from "./env.ts";
import type { Frame } from "./sse.ts";
import { Follower, type Line, type Outcome } from "./stream.ts";

export interface Listener {
  frame(frame: Frame): void;
  line(state: Line): void;
  /** The line is open: what is shown may be old. */
  opened(): void;
  over(outcome: Outcome): void;
}

type Word = { frame: Frame } | { line: Line } | { ask: true };

export class Feed {
  private readonly channel: Channel;
  private follower: Follower | null = null;
  private resign: (() => void) | null = null;
  private cursor: string | null = null;
  private state: Line | null = null;
  private readonly unlisten: () => void;

  constructor(
    private readonly env: Env,
    private readonly listener: Listener,
  ) {
    this.channel = env.channel("holdfast.feed", (word) => this.hear(word as Word));
    this.unlisten = env.onVisibility(() => this.turn());
    this.turn();
    this.channel.say({ ask: true });
  }

  close(): void {
    this.unlisten();
    this.resign?.();
    this.resign = null;
    this.channel.close();
  }

  private turn(): void {
    if (this.env.isHidden()) {
      this.resign?.();
      this.resign = null;
    } else if (this.resign === null) {
      this.resign = this.env.lead("holdfast.feed", () => this.lead());
      if (this.state !== null) this.listener.opened(); // shown again: what the others heard meanwhile we may have missed
    }
  }

  private lead(): () => void {
    const follower = new Follower(this.env, {
      path: "/api/events",
      cursor: () => this.cursor,
      take: (frames) => {
        for (const frame of frames) this.tell({ frame });
        return false;
      },
      line: (line) => this.tell({ line }),
    });
    this.follower = follower;
    void follower.done.then((outcome) => {
      if (outcome === "stopped") return;
      this.cursor = null;
      this.listener.over(outcome);
    });
    return () => {
      follower.stop();
      this.follower = null;
    };
  }

  private tell(word: Word): void {
    this.channel.say(word);
    this.take(word);
  }

  private hear(word: Word): void {
    if (!("ask" in word)) this.take(word);
    else if (this.follower && this.state) this.channel.say({ line: this.state });
  }

  private take(word: Word): void {
    if ("frame" in word) {
      this.cursor = word.frame.id ?? this.cursor;
      if (word.frame.event) this.listener.frame(word.frame);
    } else if ("line" in word) {
      const before = this.state;
      this.state = word.line;
      this.listener.line(word.line);
      if (word.line === "open" && before !== "open") this.listener.opened();
    }
  }
}

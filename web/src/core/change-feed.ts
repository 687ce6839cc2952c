// The change feed, shared by all tabs of a browser because browsers allow six connections per origin. The leading
// tab holds the connection and broadcasts; hidden tabs do not lead. Without leader election each tab connects itself.

import type { Channel, Env } from "./env.ts";
import { type ConnectionState, EventStream, type StreamOutcome } from "./event-stream.ts";
import type { Frame } from "./sse-parser.ts";

export interface ChangeFeedListener {
  onFrame(frame: Frame): void;
  onStateChange(state: ConnectionState): void;
  /** Changes may have been missed: what is shown may be stale. */
  onConnected(): void;
  onEnd(outcome: StreamOutcome): void;
}

type TabMessage = { frame: Frame } | { state: ConnectionState } | { requestState: true };

const NAME = "holdfast.feed";

export class ChangeFeed {
  private readonly channel: Channel;
  private stream: EventStream | null = null;
  private resign: (() => void) | null = null;
  private cursor: string | null = null;
  private state: ConnectionState | null = null;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly env: Env,
    private readonly listener: ChangeFeedListener,
  ) {
    this.channel = env.openChannel(NAME, (message) => this.receive(message as TabMessage));
    this.unsubscribe = env.onVisibilityChange(() => this.joinOrResign());
    this.joinOrResign();
    this.channel.send({ requestState: true });
  }

  close(): void {
    this.unsubscribe();
    this.resign?.();
    this.resign = null;
    this.channel.close();
  }

  private joinOrResign(): void {
    if (this.env.isHidden()) {
      this.resign?.();
      this.resign = null;
    } else if (this.resign === null) {
      this.resign = this.env.electLeader(NAME, () => this.lead());
      if (this.state !== null) this.listener.onConnected(); // broadcasts may have been missed while hidden
    }
  }

  private lead(): () => void {
    const stream = new EventStream(this.env, {
      path: "/api/events",
      cursor: () => this.cursor,
      onFrames: (frames) => {
        for (const frame of frames) this.broadcast({ frame });
        return false;
      },
      onStateChange: (state) => this.broadcast({ state }),
    });
    this.stream = stream;
    void stream.done.then((outcome) => {
      if (outcome === "stopped") return;
      this.cursor = null;
      this.listener.onEnd(outcome);
    });
    return () => {
      stream.stop();
      this.stream = null;
    };
  }

  private broadcast(message: TabMessage): void {
    this.channel.send(message);
    this.apply(message);
  }

  private receive(message: TabMessage): void {
    if (!("requestState" in message)) this.apply(message);
    else if (this.stream && this.state) this.channel.send({ state: this.state });
  }

  private apply(message: TabMessage): void {
    if ("frame" in message) {
      this.cursor = message.frame.id ?? this.cursor;
      if (message.frame.event) this.listener.onFrame(message.frame);
    } else if ("state" in message) {
      const before = this.state;
      this.state = message.state;
      this.listener.onStateChange(message.state);
      if (message.state === "open" && before !== "open") this.listener.onConnected();
    }
  }
}

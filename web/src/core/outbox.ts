// What was sent and is not known to be stored. It outlives a reload, and its idempotency key makes sending it again safe.

import { type Api, Problem } from "./api.ts";
import { backoff, type Env, sleep } from "./env.ts";
import { Store } from "./store.ts";
import type { FilePart, InputPart, JsonObject } from "./wire.ts";

export interface Outgoing {
  readonly key: string;
  readonly sid: string;
  readonly text: string;
  readonly files: readonly FilePart[];
  readonly options: JsonObject;
  readonly at: string;
  readonly state: "sending" | "stored" | "refused";
  readonly problem: string | null;
}

const NAME = "holdfast.outbox";

export class Outbox {
  readonly state: Store<readonly Outgoing[]>;

  constructor(
    private readonly env: Env,
    private readonly api: Api,
    private readonly stored: (sid: string) => void,
  ) {
    this.state = new Store(this.read());
    this.state.subscribe(() => this.write());
  }

  /** Take up again what an earlier life of the page left. */
  resume(): void {
    for (const item of this.state.get()) if (item.state === "sending") void this.deliver(item.key);
  }

  add(sid: string, text: string, files: readonly FilePart[], options: JsonObject = {}): string {
    const key = this.env.newId();
    const at = new Date(this.env.now()).toISOString();
    this.state.set([...this.state.get(), { key, sid, text, files, options, at, state: "sending", problem: null }]);
    void this.deliver(key);
    return key;
  }

  again(key: string): void {
    this.change(key, { state: "sending", problem: null });
    void this.deliver(key);
  }

  drop(key: string): void {
    this.state.set(this.state.get().filter((item) => item.key !== key));
  }

  /** The server shows it: ours is no longer needed. */
  seen(keys: ReadonlySet<string>): void {
    const left = this.state.get().filter((item) => !keys.has(item.key));
    if (left.length !== this.state.get().length) this.state.set(left);
  }

  private find = (key: string) => this.state.get().find((item) => item.key === key);

  private change(key: string, fields: Partial<Outgoing>): void {
    this.state.set(this.state.get().map((item) => (item.key === key ? { ...item, ...fields } : item)));
  }

  private async deliver(key: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const item = this.find(key);
      if (item?.state !== "sending") return;
      try {
        await this.api.send(item.sid, { input: inputOf(item.text, item.files), ...item.options } as JsonObject, key);
        this.change(key, { state: "stored", problem: null });
        this.stored(item.sid);
        return;
      } catch (error) {
        const problem = error as Problem;
        if (!(problem instanceof Problem) || !problem.passes) {
          this.change(key, { state: "refused", problem: problem.message });
          return;
        }
        this.change(key, { problem: problem.message });
      }
      await sleep(this.env, backoff(attempt, this.env.random), new AbortController().signal);
    }
  }

  private read(): Outgoing[] {
    try {
      const items = JSON.parse(this.env.storage?.getItem(NAME) ?? "[]") as Outgoing[];
      // Stored ones are shown by the server; it is asked before anything is drawn.
      return items.filter((item) => item.state !== "stored");
    } catch {
      return [];
    }
  }

  private write(): void {
    try {
      const items = this.state.get();
      if (items.length) this.env.storage?.setItem(NAME, JSON.stringify(items));
      else this.env.storage?.removeItem(NAME);
    } catch {
      // A full or forbidden storage costs the safety over a reload and nothing else.
    }
  }
}

export function inputOf(text: string, files: readonly FilePart[]): string | InputPart[] {
  if (!files.length) return text;
  const attached: InputPart[] = files.map((file) => ({ type: "file", file_id: file.file_id }));
  return text.trim() ? [...attached, { type: "text", text }] : attached;
}

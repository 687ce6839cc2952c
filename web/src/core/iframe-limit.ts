/** Limits how many iframes (of diagrams) the page has at the same time: each takes the memory and the start of a page. */
export class FrameSlots {
  /** The functions that remove the frames, oldest first. */
  private readonly holders = new Set<() => void>();

  constructor(private readonly max: number) {}

  /** Takes a free slot. Returns whether the caller has one now. */
  take(remove: () => void): boolean {
    if (this.holders.size < this.max) this.holders.add(remove);
    return this.holders.has(remove);
  }

  /** Takes a slot; if none is free, the oldest frame is removed. */
  replace(remove: () => void): void {
    const [oldest] = this.holders;
    if (this.take(remove) || !oldest) return;
    this.holders.delete(oldest);
    oldest();
    this.holders.add(remove);
  }

  release(remove: () => void): void {
    this.holders.delete(remove);
  }
}

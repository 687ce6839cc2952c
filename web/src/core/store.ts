// A minimal observable value, and a task that coalesces concurrent calls.

export class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private value: T) {}

  get = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  patch(fields: Partial<T>): void {
    this.set({ ...this.value, ...fields });
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };
}

/** Runs one at a time. Calls made during a run share one further run, so no caller gets a result older than its call. */
export class CoalescedTask {
  private running: Promise<void> | null = null;
  private next: Promise<void> | null = null;
  constructor(private readonly work: () => Promise<void>) {}

  run(): Promise<void> {
    if (!this.running) {
      this.running = this.work().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    this.next ??= this.running.then(() => {
      this.next = null;
      return this.run();
    });
    return this.next;
  }
}

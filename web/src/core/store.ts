// The smallest store that works: a value, and listeners that are told when it is another one.

export class Store<T> {
  private listeners = new Set<() => void>();
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

/** One at a time; asked again meanwhile, it runs once more. Nobody waits for a result older than their question. */
export class Latest {
  private running: Promise<void> | null = null;
  private again: Promise<void> | null = null;
  constructor(private readonly work: () => Promise<void>) {}

  run(): Promise<void> {
    if (!this.running) {
      this.running = this.work().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    this.again ??= this.running.then(() => {
      this.again = null;
      return this.run();
    });
    return this.again;
  }
}

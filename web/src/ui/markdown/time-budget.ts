/** Limits the time that slow calls take on the page in total; calls that are quick cost nothing. */
export class TimeBudget {
  private static readonly SLOW_MS = 50;
  private static readonly MAX_SLOW_MS = 3_000;
  private spent = 0;

  constructor(private readonly now: () => number) {}

  /** Returns null without calling once the budget is used up. */
  run<T>(action: () => T): T | null {
    if (this.spent > TimeBudget.MAX_SLOW_MS) return null;
    const start = this.now();
    try {
      return action();
    } finally {
      const took = this.now() - start;
      if (took > TimeBudget.SLOW_MS) this.spent += took;
    }
  }
}

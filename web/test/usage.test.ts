import { describe, expect, it } from "vitest";
import { Toasts } from "../src/core/toasts.ts";
import { dayIn, firstDay, showBudgetWarnings, usedShare } from "../src/core/usage.ts";
import { FakeBrowser, FakeEnv } from "./fake-env.ts";

const DAY_MS = 86_400_000;

describe("periods of usage", () => {
  it("end with the day that it is in the time zone", () => {
    const at = Date.parse("2026-11-19T23:30:00Z");
    expect(dayIn("UTC", at)).toBe("2026-11-19");
    expect(dayIn("Europe/Berlin", at)).toBe("2026-11-20");
    expect(dayIn("America/New_York", at)).toBe("2026-11-19");
  });

  it("have as many days as were chosen, across months and clock changes", () => {
    expect(firstDay("2026-11-19", 1)).toBe("2026-11-19");
    expect(firstDay("2026-11-03", 30)).toBe("2026-10-05");
    expect(firstDay("2028-03-01", 2)).toBe("2028-02-29");
  });
});

describe("budgets", () => {
  it("are full when nothing is allowed", () => {
    expect(usedShare({ used: 5, limit: 20 })).toBe(0.25);
    expect(usedShare({ used: 50, limit: 20 })).toBe(1);
    expect(usedShare({ used: 0, limit: 0 })).toBe(1);
  });

  it("warn once a day, in all tabs together", async () => {
    const browser = new FakeBrowser();
    const first = new FakeEnv(browser);
    const toasts = new Toasts(first);
    showBudgetWarnings(first, toasts, ["The daily budget is used up: 5 so far."]);
    expect(toasts.state.get()?.text).toBe("The daily budget is used up: 5 so far.");
    toasts.dismiss();
    const second = new FakeEnv(browser);
    showBudgetWarnings(second, toasts, ["The daily budget is used up: 6 so far."]);
    expect(toasts.state.get()).toBeNull();
    showBudgetWarnings(second, toasts, ["The daily budget is used up: 7 so far.", "The monthly one too: 7."]);
    expect(toasts.state.get()?.text).toBe("The monthly one too: 7.");
    toasts.dismiss();
    await second.pass(DAY_MS);
    showBudgetWarnings(second, toasts, ["The daily budget is used up: 1 so far."]);
    expect(toasts.state.get()?.text).toBe("The daily budget is used up: 1 so far.");
  });
});

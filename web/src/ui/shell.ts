// What any screen may ask of the frame around it.

import { Store } from "../core/store.ts";

export const sidebarOpen = new Store(false);
export const toggleSidebar = (): void => sidebarOpen.set(!sidebarOpen.get());

export interface Question {
  readonly title: string;
  readonly detail: string;
  /** null: only yes or no is asked. */
  readonly field: string | null;
  readonly value: string;
  readonly action: string;
  readonly secret: boolean;
  /** A box to be ticked along with a yes. */
  readonly option: string | null;
  readonly answer: (value: string | null) => void;
}

export const question = new Store<Question | null>(null);

/** The text, or null. */
export function ask(title: string, field: string, value: string, secret = false): Promise<string | null> {
  return new Promise((answer) =>
    question.set({ title, detail: "", field, value, action: "Save", secret, option: null, answer }),
  );
}

export async function confirm(title: string, detail: string, action: string): Promise<boolean> {
  return (await confirmWith(title, detail, action, null)) !== null;
}

/** null: no; otherwise whether the option was ticked too. */
export async function confirmWith(
  title: string,
  detail: string,
  action: string,
  option: string | null,
): Promise<boolean | null> {
  const said = await new Promise<string | null>((answer) =>
    question.set({ title, detail, field: null, value: "", action, secret: false, option, answer }),
  );
  return said === null ? null : said !== "";
}

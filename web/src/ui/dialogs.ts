// Prompts and confirmations that any screen can open. `PromptDialog` shows them.

import { Store } from "../core/store.ts";

export interface DialogRequest {
  readonly title: string;
  readonly action: string;
  readonly detail?: string;
  /** The label of the text field; without it only a confirmation is asked for. */
  readonly field?: string;
  readonly value?: string;
  readonly secret?: boolean;
  /** Whether the field is the user's own password, which the browser may fill in. */
  readonly ownPassword?: boolean;
  /** The label of an optional checkbox. */
  readonly option?: string;
  readonly onAnswer: (value: string | null) => void;
}

/** Whether the settings of the shown chat are open. */
export const chatSettingsOpen = new Store(false);
export const dialogRequest = new Store<DialogRequest | null>(null);

const open = (request: Omit<DialogRequest, "onAnswer">) =>
  new Promise<string | null>((onAnswer) => dialogRequest.set({ ...request, onAnswer }));

/** Answers as if the dialog was canceled. */
export function cancelDialog(): void {
  const request = dialogRequest.get();
  dialogRequest.set(null);
  request?.onAnswer(null);
}

/** Returns the text, or null if the dialog was canceled. */
export function askText(title: string, field: string, value: string, secret = false, action = "Save") {
  return open({ title, field, value, action, secret });
}

/** Returns the password, or null if the dialog was canceled. `problem`: why the last one was not accepted. */
export function askPassword(problem: string | null): Promise<string | null> {
  const detail = problem ?? "This is a sensitive change. Enter your password to continue.";
  return open({ title: "Confirm your password", detail, field: "Password", action: "Continue", ownPassword: true });
}

/** Returns whether the user confirmed, and whether the option was checked. */
export async function askConfirmation(title: string, detail: string, action: string, option?: string) {
  const answer = await open({ title, detail, action, ...(option ? { option } : {}) });
  return { confirmed: answer !== null, optionChecked: Boolean(answer) };
}

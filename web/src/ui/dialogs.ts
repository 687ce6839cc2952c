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
  /** Whether the text may be empty. */
  readonly optional?: boolean;
  /** The label of an optional checkbox. */
  readonly option?: string;
  /** Whether what is confirmed loses nothing. */
  readonly safe?: boolean;
  /** Does what is asked for, and returns why it failed: then the dialog stays open and says so. */
  readonly attempt?: (value: string) => Promise<string | null>;
  readonly onAnswer: (value: string | null) => void;
}

/** Whether the settings of the shown chat are open. */
export const chatSettingsOpen = new Store(false);
/** The open ones, the topmost last: an attempt can ask for the password. */
export const dialogRequests = new Store<readonly DialogRequest[]>([]);

const open = (request: Omit<DialogRequest, "onAnswer">) =>
  new Promise<string | null>((onAnswer) => dialogRequests.set([...dialogRequests.get(), { ...request, onAnswer }]));

export function answerDialog(request: DialogRequest, value: string | null): void {
  dialogRequests.set(dialogRequests.get().filter((other) => other !== request));
  request.onAnswer(value);
}

/** Answers as if the dialogs were canceled. */
export function cancelDialogs(): void {
  for (const request of dialogRequests.get()) answerDialog(request, null);
}

type TextOptions = Pick<DialogRequest, "secret" | "optional" | "attempt"> & { readonly action?: string };

/** Returns the text, or null if the dialog was canceled. */
export function askText(title: string, field: string, value: string, options: TextOptions = {}) {
  return open({ title, field, value, action: "Save", ...options });
}

/** Returns the password, or null if the dialog was canceled. `problem`: why the last one was not accepted. */
export function askPassword(problem: string | null): Promise<string | null> {
  const detail = problem ?? "This is a sensitive change. Enter your password to continue.";
  return open({ title: "Confirm your password", detail, field: "Password", action: "Continue", ownPassword: true });
}

/** Returns whether the user confirmed, and whether the option was checked. */
export async function askConfirmation(title: string, detail: string, action: string, option?: string, safe = false) {
  const answer = await open({ title, detail, action, safe, ...(option ? { option } : {}) });
  return { confirmed: answer !== null, optionChecked: Boolean(answer) };
}

// The id under which the server knows this device, if its notifications are on.

import type { Env } from "../../core/env.ts";

const STORED_ID = "holdfast.push";

export function ownDevice({ storage }: Env): string | null {
  try {
    return storage?.getItem(STORED_ID) ?? null;
  } catch {
    return null;
  }
}

export function rememberDevice({ storage }: Env, id: string | null): void {
  try {
    if (id === null) storage?.removeItem(STORED_ID);
    else storage?.setItem(STORED_ID, id);
  } catch {
    // Storage is full or disabled: the device is in the list all the same.
  }
}

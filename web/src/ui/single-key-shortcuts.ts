// Whether the shortcuts of a single key (J, K, R and ?) are on, on this device. Speech input and unsteady hands press
// such keys by accident.

import { Store } from "../core/store.ts";

const STORAGE_KEY = "holdfast.single-keys";

export const singleKeysOn = new Store(readSetting());

export function turnSingleKeys(on: boolean): void {
  singleKeysOn.set(on);
  try {
    if (on) localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, "off");
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
}

function readSetting(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) !== "off";
  } catch {
    return true;
  }
}

import { createContext } from "react";

/** The prefix of the ids of a text's footnotes, which must be unique on the page. */
export const FootnotesId = createContext("");

export function showFootnote(id: string): void {
  const note = document.getElementById(id);
  note?.scrollIntoView({ block: "nearest" });
  note?.focus({ preventScroll: true });
}

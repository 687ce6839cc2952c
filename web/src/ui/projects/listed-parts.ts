// Which part of a list is shown.

export type ListedPart = "active" | "archived";

export const LISTED_PARTS: readonly (readonly [ListedPart, string])[] = [
  ["active", "Active"],
  ["archived", "Archived"],
];

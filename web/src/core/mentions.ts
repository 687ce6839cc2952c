// Files that a message mentions: an @ and a path, in quotes if it has spaces.

export interface Mention {
  /** Where the @ is. */
  readonly start: number;
  readonly query: string;
}

/** The mention that is being typed before the cursor. */
export function mentionAt(text: string, cursor: number): Mention | null {
  const found = /(?:^|[\s(])@(?:"([^"\n]{0,200})|([^\s"@]{0,200}))$/.exec(
    text.slice(Math.max(0, cursor - 300), cursor),
  );
  if (!found) return null;
  const query = found[1] ?? found[2] ?? "";
  return { start: cursor - query.length - (found[1] === undefined ? 1 : 2), query };
}

/** How a path is mentioned. A folder stays open, so that what is in it can be chosen next. */
export function mentionOf(path: string, isDirectory: boolean): string {
  const name = path.replaceAll("%25", "%");
  if (!/\s/.test(name)) return `@${name}${isDirectory ? "/" : " "}`;
  return isDirectory ? `@"${name}/` : `@"${name}" `;
}

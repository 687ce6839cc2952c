/** Characters that are not shown or change the order of others, such as U+202E. Not among them: line breaks, tabs, and
 * what emoji and some scripts need between their own characters. */
const INVISIBLE =
  /(?!\r?\n|\t|(?<=[^\0-\x7f])(?:\u200c|\u200d|\ufe0e|\ufe0f))[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** Makes invisible characters visible as escapes, so that text reads as what will be executed. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (char) => {
    const code = (char.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

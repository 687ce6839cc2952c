// Long text that is pasted into a message becomes an attached file: the message stays readable.

const MIN_LENGTH = 5000;
const MIN_LINES = 100;

export const isLongPaste = (text: string): boolean =>
  text.length >= MIN_LENGTH || text.split("\n", MIN_LINES).length >= MIN_LINES;

/** The name of the next pasted file beside files with these names. */
export function pastedFileName(taken: readonly string[]): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? "Pasted text.txt" : `Pasted text ${n}.txt`;
    if (!taken.includes(name)) return name;
  }
}

/** A sentence of the server, whose words between backquotes are code. */
export function InlineCode({ text }: { text: string }) {
  return text.split("`").map((piece, n) =>
    n % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
      <code key={n}>{piece}</code>
    ) : (
      piece
    ),
  );
}

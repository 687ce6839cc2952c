import { Link } from "../router.tsx";
import { SECTION_NAMES } from "../settings/section-names.ts";

const SECTIONS = Object.entries(SECTION_NAMES);
const SETTINGS = new RegExp(`Settings → (${SECTIONS.map(([, name]) => name).join("|")})`);

/** A sentence that says what to do next: the settings that it names are links. */
export function Advice({ text }: { text: string }) {
  return text.split(SETTINGS).map((piece, n) =>
    n % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
      <Link key={n} href={`/settings#${SECTIONS.find(([, name]) => name === piece)?.[0]}`}>
        Settings → {piece}
      </Link>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
      <InlineCode key={n} text={piece} />
    ),
  );
}

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

// What a tool call is about: its edits as differences or else its arguments, and the places in files that it names.

import { escapeInvisible } from "../../core/invisible-characters.ts";
import { isJsonObject, type Json } from "../../core/types.ts";
import styles from "./CallDetails.module.css";
import { Diff, editsOf } from "./Diff.tsx";
import { ToolArguments } from "./ToolArguments.tsx";

export function CallDetails({ args }: { args: Json }) {
  const edits = editsOf(args);
  const places = locationsOf(args);
  return (
    <>
      {edits.map((edit, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: edits have no ids, and may be of the same file
        <Diff key={n} {...edit} />
      ))}
      {!edits.length && <ToolArguments args={withoutLocations(args)} />}
      {places.length > 0 && (
        <ul className={styles.locations} aria-label="Files">
          {places.map((place) => (
            <li key={place}>
              <code>{escapeInvisible(place)}</code>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The places in files that an agent says its call is about, such as `src/main.py:12`. */
function locationsOf(args: Json): readonly string[] {
  const listed = isJsonObject(args) && Array.isArray(args.locations) ? args.locations : [];
  return [...new Set(listed.filter((place) => typeof place === "string"))];
}

function withoutLocations(args: Json): Json {
  if (!isJsonObject(args) || !locationsOf(args).length) return args;
  const { locations: _, ...rest } = args;
  return rest;
}

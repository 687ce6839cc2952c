// What a tool call is about: its edits as differences or else its arguments, and the places in files that it names.

import { escapeInvisible } from "../../core/invisible-characters.ts";
import { isJsonObject, type Json } from "../../core/types.ts";
import { useOpenFile } from "../workspace/workspace-state.ts";
import styles from "./CallDetails.module.css";
import { Diff, editsOf } from "./Diff.tsx";
import { ToolArguments } from "./ToolArguments.tsx";

interface Props {
  args: Json;
  /** Whether the files that it names may be there already. */
  linked?: boolean;
}

export default function CallDetails({ args, linked = true }: Props) {
  const edits = editsOf(args);
  const open = useOpenFile();
  const openFile = linked ? open : null;
  const locations = locationsOf(args);
  const places = locations.length || !openFile ? locations : pathsOf(args);
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
              {openFile ? (
                <button type="button" title="Show file" onClick={() => openFile(place)}>
                  <code>{escapeInvisible(place)}</code>
                </button>
              ) : (
                <code>{escapeInvisible(place)}</code>
              )}
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

/** The file that a call of a file tool is about. */
function pathsOf(args: Json): readonly string[] {
  if (!isJsonObject(args)) return [];
  const named = [args.path, args.file_path].filter((path) => typeof path === "string" && path !== "" && path !== ".");
  return [...new Set(named as string[])];
}

function withoutLocations(args: Json): Json {
  if (!isJsonObject(args) || !locationsOf(args).length) return args;
  const { locations: _, ...rest } = args;
  return rest;
}

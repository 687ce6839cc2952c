// What is in a file. What an agent wrote runs only as an artifact: in a frame without our origin and without network.

import { type ReactNode, useEffect, useEffectEvent, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { WorkspaceFileResponse, WorkspacePreviewResponse } from "../../core/api-types.ts";
import { languageOf, parseTable } from "../../core/file-views.ts";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import type { Json } from "../../core/types.ts";
import { workspaceAddress } from "../../core/workspace.ts";
import { useApp, useStore } from "../context.ts";
import { formatCount, formatSize, formatTime } from "../format.ts";
import { FencedCode } from "../markdown/CodeBlock.tsx";
import { MarkdownText } from "../markdown/MarkdownText.tsx";
import { withRoot } from "../root-path.ts";
import { Button, buttonClass } from "../widgets/buttons.tsx";
import { Icon } from "../widgets/icons.tsx";
import { Segments } from "../widgets/Segments.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import { FileEditor } from "./FileEditor.tsx";
import { draftKey, fileDrafts } from "./file-drafts.ts";
import { JsonTree } from "./JsonTree.tsx";
import styles from "./Workspace.module.css";

const MAX_ROWS = 500;
const MAX_COLUMNS = 50;
const SEPARATORS: Readonly<Record<string, string>> = { "text/csv": ",", "text/tab-separated-values": "\t" };

type State = { readonly preview: WorkspacePreviewResponse } | { readonly problem: string } | null;

interface Props {
  sid: string;
  path: string;
  /** Changes with the files. */
  version: string;
  editing: boolean;
  onEditing: (editing: boolean) => void;
  /** The file was saved, or turned out to be another version. */
  onChanged: () => void;
}

export function FilePreview({ sid, path, version, editing, onEditing, onChanged }: Props) {
  const app = useApp();
  const [state, setState] = useState<State>(null);
  const hasDraft = useStore(fileDrafts).has(draftKey(sid, path));
  const keeps = useEffectEvent(() => editing && hasDraft); // of a file that was deleted meanwhile
  // biome-ignore lint/correctness/useExhaustiveDependencies: the file is read again when it may have changed
  useEffect(() => {
    let current = true;
    app.api.get<WorkspacePreviewResponse>(workspaceAddress(sid, "preview", { path })).then(
      (preview) => current && setState({ preview }),
      (error) => {
        if (current) setState((shown) => (keeps() && shown ? shown : { problem: errorMessage(error) }));
      },
    );
    return () => {
      current = false;
    };
  }, [app, sid, path, version]);
  if (state === null) {
    return (
      <div className={styles.message}>
        <Spinner name="Loading file" />
      </div>
    );
  }
  if ("problem" in state) return <p className={styles.message}>{state.problem}</p>;
  const { file, editable } = state.preview;
  const isEdited = editing && (editable || hasDraft);
  return (
    <div className={styles.file}>
      <div className={styles.about}>
        <span>
          {formatSize(file.size)} · {formatTime(file.modified_at)}
        </span>
        <span className={styles.spacer} />
        {editable && !isEdited && (
          <Button small onClick={() => onEditing(true)}>
            <Icon name="edit" />
            Edit
          </Button>
        )}
        <a
          className={buttonClass(undefined, true)}
          href={withRoot(workspaceAddress(sid, "content", { path, download: true }))}
          download={file.name}
        >
          <Icon name="download" />
          Download
        </a>
      </div>
      {isEdited ? (
        <FileEditor sid={sid} preview={state.preview} onClose={() => onEditing(false)} onChanged={onChanged} />
      ) : (
        <Content key={file.media_type} sid={sid} preview={state.preview} />
      )}
    </div>
  );
}

function Content({ sid, preview }: { sid: string; preview: WorkspacePreviewResponse }) {
  const { file, text } = preview;
  if (text === null) return <Media sid={sid} file={file} />;
  if (text === "") return <p className={styles.message}>This file is empty</p>;
  const cut = preview.truncated && (
    <p className={styles.cut} role="note">
      Only the beginning of this file is shown. Download it to see all {formatSize(file.size)}.
    </p>
  );
  const source = (
    <>
      {cut}
      <FencedCode code={escapeInvisible(text)} language={languageOf(file.name)} />
    </>
  );
  const rendered = renderText(sid, file, text, preview.truncated, cut);
  return rendered ? <Rendered name={rendered.name} view={rendered.view} source={source} /> : source;
}

/** The view of a text that is not its source; null if there is none. */
function renderText(
  sid: string,
  file: WorkspaceFileResponse,
  text: string,
  truncated: boolean,
  cut: ReactNode,
): { name: string; view: ReactNode } | null {
  const separator = SEPARATORS[file.media_type];
  if (separator !== undefined) {
    const view = (
      <>
        {cut}
        <TextTable text={text} separator={separator} />
      </>
    );
    return { name: "Table", view };
  }
  switch (file.media_type) {
    case "text/markdown": {
      const view = (
        <>
          {cut}
          <MarkdownText text={text} growing={false} />
        </>
      );
      return { name: "Preview", view };
    }
    case "application/json": {
      const value = truncated ? undefined : parseJson(text);
      return value === undefined ? null : { name: "Tree", view: <JsonTree value={value} /> };
    }
    case "text/html":
    case "image/svg+xml":
      return { name: "Preview", view: <Artifact sid={sid} file={file} /> };
    default:
      return null;
  }
}

function Rendered({ name, view, source }: { name: string; view: ReactNode; source: ReactNode }) {
  const [shown, setShown] = useState<"view" | "source">("view");
  const options = [
    ["view", name],
    ["source", "Source"],
  ] as const;
  return (
    <>
      <Segments label="View" options={options} value={shown} onChange={setShown} />
      {shown === "view" ? view : source}
    </>
  );
}

function Artifact({ sid, file }: { sid: string; file: WorkspaceFileResponse }) {
  const [scripts, setScripts] = useState(false);
  const src = withRoot(workspaceAddress(sid, "artifact", { path: file.path, scripts, v: file.etag }));
  return (
    <>
      <label className={styles.scripts}>
        <input type="checkbox" checked={scripts} onChange={(event) => setScripts(event.target.checked)} />
        Run scripts
        <span>They cannot reach this app, but could send what is in this file elsewhere over WebRTC.</span>
      </label>
      <iframe
        key={src}
        className={styles.frame}
        title={escapeInvisible(file.name)}
        src={src}
        sandbox={scripts ? "allow-scripts" : ""}
        referrerPolicy="no-referrer"
      />
    </>
  );
}

function Media({ sid, file }: { sid: string; file: WorkspaceFileResponse }) {
  const src = withRoot(workspaceAddress(sid, "content", { path: file.path, v: file.etag }));
  const name = escapeInvisible(file.name);
  const kind = file.media_type === "application/pdf" ? "pdf" : file.media_type.split("/", 1)[0];
  switch (kind) {
    case "image":
      return <img className={styles.image} src={src} alt={name} />;
    case "audio":
      // biome-ignore lint/a11y/useMediaCaption: a file of an agent has no captions
      return <audio className={styles.media} src={src} controls preload="metadata" aria-label={name} />;
    case "video":
      // biome-ignore lint/a11y/useMediaCaption: a file of an agent has no captions
      return <video className={styles.media} src={src} controls preload="metadata" aria-label={name} />;
    case "pdf":
      return (
        <>
          <iframe className={styles.frame} title={name} src={src} />
          <a href={src} target="_blank" rel="noreferrer">
            Open in a new tab
          </a>
        </>
      );
    default:
      return <p className={styles.message}>This is a binary file, which cannot be shown. Download it to open it.</p>;
  }
}

function TextTable({ text, separator }: { text: string; separator: string }) {
  const { rows, cut } = parseTable(text, separator, MAX_ROWS + 1, MAX_COLUMNS);
  const [head, ...body] = rows;
  return (
    <>
      {cut && (
        <p className={styles.cut} role="note">
          The first {formatCount(MAX_ROWS)} rows and {MAX_COLUMNS} columns are shown.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className={styles.table} aria-label="Table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {head?.map((cell, n) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: cells have no ids
                <th key={n} scope="col">
                  {escapeInvisible(cell)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, n) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have no ids
              <tr key={n}>
                {row.map((cell, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: cells have no ids
                  <td key={at}>{escapeInvisible(cell)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

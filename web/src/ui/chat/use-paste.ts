// What is pasted into the message box: files and long text are attached, other text is inserted by the browser.

import type { ClipboardEvent, RefObject } from "react";
import { isLongPaste, pastedFileName } from "../../core/pasted-text.ts";
import { useApp } from "../context.ts";
import type { useUploads } from "./use-uploads.ts";

export function usePaste(area: RefObject<HTMLTextAreaElement | null>, uploads: ReturnType<typeof useUploads>) {
  const { toasts } = useApp();
  const insert = (pasted: string) => {
    const box = area.current;
    if (!box) return;
    box.focus();
    box.setRangeText(pasted, box.selectionStart, box.selectionEnd, "end"); // the cursor is behind it at once
    box.dispatchEvent(new Event("input", { bubbles: true })); // as if it was typed
  };
  const attach = async (pasted: string) => {
    const names = [...uploads.files.map(({ name }) => name), ...uploads.pending.map(({ file }) => file.name)];
    const file = new File([pasted], pastedFileName(names), { type: "text/plain" });
    const fileId = await uploads.addOrFail(file);
    if (fileId === null) return insert(pasted); // nothing that was pasted is lost
    toasts.show("Long text attached as a file", {
      name: "Insert as text",
      run: () => {
        uploads.remove(fileId);
        insert(pasted);
      },
    });
  };
  return (event: ClipboardEvent) => {
    const { files } = event.clipboardData;
    const pasted = event.clipboardData.getData("text/plain");
    if (files.length) uploads.add(files);
    else if (isLongPaste(pasted)) void attach(pasted);
    else return;
    event.preventDefault();
  };
}

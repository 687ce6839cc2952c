// Files dropped anywhere on the page are attached, except where `data-takes-files` is set: next to the message box the
// browser would open them instead.

import { useEffect, useEffectEvent, useState } from "react";

/** Returns whether files are being dragged over the page. */
export function useFileDrop(onFiles: (files: FileList) => void): boolean {
  const [over, setOver] = useState(false);
  const add = useEffectEvent(onFiles);
  useEffect(() => {
    const onDragOver = (event: DragEvent) => setOver(hasFiles(event) && !isElsewhere(event));
    const onDragLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false); // left the page, not an element in it
    };
    const onDrop = (event: DragEvent) => {
      setOver(false);
      if (event.dataTransfer?.files.length && !isElsewhere(event)) add(event.dataTransfer.files);
    };
    addEventListener("dragover", onDragOver);
    addEventListener("dragleave", onDragLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDragOver);
      removeEventListener("dragleave", onDragLeave);
      removeEventListener("drop", onDrop);
    };
  }, []);
  return over;
}

/** Keeps the browser from opening dropped files, on every screen. */
export function preventFileNavigation(): () => void {
  const prevent = (event: DragEvent) => {
    if (hasFiles(event)) event.preventDefault();
  };
  addEventListener("dragover", prevent);
  addEventListener("drop", prevent);
  return () => {
    removeEventListener("dragover", prevent);
    removeEventListener("drop", prevent);
  };
}

/** Over something that takes files for itself. */
const isElsewhere = (event: DragEvent) => event.target instanceof Element && event.target.closest("[data-takes-files]");

export const hasFiles = (event: Pick<DragEvent, "dataTransfer">) =>
  event.dataTransfer?.types.includes("Files") ?? false;

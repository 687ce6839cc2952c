/** Focuses the message box, except where that opens a keyboard on the screen. */
export function focusMessageBox(): void {
  if (!matchMedia("(hover: hover)").matches) return;
  document.querySelector<HTMLTextAreaElement>("textarea[data-message-box]")?.focus();
}

/** Focuses the message box if the button that was pressed is gone or disabled by now. */
export function rescueFocus(): void {
  requestAnimationFrame(() => {
    const active = document.activeElement;
    if (active === null || active === document.body || active.matches(":disabled")) focusMessageBox();
  });
}

/** Focuses a button of a message's version switcher: the one with that name, or the other if it is disabled. */
export function focusVersionButton(messageId: string, name: string): void {
  const group = document.querySelector(`article[data-id="${CSS.escape(messageId)}"] [aria-label="Versions"]`);
  const named = group?.querySelector<HTMLButtonElement>(`button[aria-label="${name}"]:enabled`);
  (named ?? group?.querySelector<HTMLButtonElement>("button:enabled"))?.focus();
}

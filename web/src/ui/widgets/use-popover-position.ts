import { type RefObject, useEffect } from "react";

/** Places a popover next to its button, within the window. */
export function placePopover(anchor: HTMLElement, box: HTMLElement): void {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const below = at.bottom + height + 8 < innerHeight;
  box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  box.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
}

/** Places an open popover. */
export function usePopoverPosition(
  button: RefObject<HTMLElement | null>,
  popover: RefObject<HTMLElement | null>,
  open: boolean,
): void {
  useEffect(() => {
    if (open && button.current && popover.current) placePopover(button.current, popover.current);
  }, [open, button, popover]);
}

import { type RefObject, useEffect } from "react";

/** Places an open popover next to its button, within the window. */
export function usePopoverPosition(
  button: RefObject<HTMLElement | null>,
  popover: RefObject<HTMLElement | null>,
  open: boolean,
): void {
  useEffect(() => {
    const [anchor, box] = [button.current, popover.current];
    if (!open || !anchor || !box) return;
    const at = anchor.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = box;
    const below = at.bottom + height + 8 < innerHeight;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    box.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
  }, [open, button, popover]);
}

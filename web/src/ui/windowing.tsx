// Long lists in pieces: what is far from the window is an empty box of the height that it had. The page stays small,
// text near the window is in it for find-in-page and readers, and the browser keeps the place (scroll anchoring).

import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

/** Says of each watched element whether it is near what can be seen of the box that it scrolls in. */
export class Nearness {
  private readonly told = new Map<Element, (near: boolean) => void>();
  private observer: IntersectionObserver | null = null;

  constructor(
    private readonly box: string,
    private readonly margin: number,
  ) {}

  watch(element: Element, tell: (near: boolean) => void): () => void {
    this.observer ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.told.get(entry.target)?.(entry.isIntersecting);
      },
      { root: element.closest(this.box), rootMargin: `${this.margin}px 0px` },
    );
    this.told.set(element, tell);
    this.observer.observe(element);
    return () => {
      this.told.delete(element);
      this.observer?.unobserve(element);
      if (this.told.size) return;
      this.observer?.disconnect();
      this.observer = null;
    };
  }
}

/** Whether somebody is at work in there: writing, reading with the keyboard, or selecting text. */
function inUse(element: Element): boolean {
  if (element.contains(document.activeElement) || element.querySelector("textarea")) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

interface PieceProps {
  nearness: Nearness;
  as?: "div" | "ul";
  /** Where it is known beforehand. */
  height?: number;
  children: () => ReactNode;
}

/** One piece. It is drawn when it is new, unless its height is known, and again whenever it comes near. */
export function Piece({ nearness, as: Tag = "div", height: known, children }: PieceProps) {
  const box = useRef<HTMLDivElement & HTMLUListElement>(null);
  const [away, setAway] = useState<number | null>(known ?? null); // its height while it is away
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    return nearness.watch(element, (near) => {
      if (near) setAway(null);
      else if (!inUse(element)) setAway((height) => height ?? element.getBoundingClientRect().height);
    });
  }, [nearness]);
  const height = away === null ? null : (known ?? away);
  return (
    <Tag ref={box} className="piece" style={{ height: height === null ? "" : `${height}px` }}>
      {height === null && children()}
    </Tag>
  );
}

/** Cards that a person has opened or shut stay so while their piece is away. */
const kept = new WeakMap<object, boolean>();

export function useOpen(card: object): [boolean | null, (open: boolean) => void] {
  const [open, setOpen] = useState<boolean | null>(() => kept.get(card) ?? null);
  const choose = (to: boolean) => {
    kept.set(card, to);
    setOpen(to);
  };
  return [open, choose];
}

/** Cut into pieces of `size`. Counted from a thing that stays in its place, so that what comes in before it moves no
 * border. */
export function pieces<T>(items: readonly T[], size: number, fixed = 0): { key: number; items: readonly T[] }[] {
  const found: { key: number; items: readonly T[] }[] = [];
  for (let from = 0; from < items.length; ) {
    const key = Math.floor((from - fixed) / size);
    const to = Math.min(items.length, (key + 1) * size + fixed);
    found.push({ key, items: items.slice(from, to) });
    from = to;
  }
  return found;
}

// Virtualizes long lists in chunks: a chunk far from the viewport becomes an empty box of the same height. Chunks near
// it stay rendered for find-in-page and screen readers, and the browser keeps the scroll position (scroll anchoring).

import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

/** Reports whether each observed element is near the visible part of its scroll container. */
export class VisibilityObserver {
  private readonly listeners = new Map<Element, (near: boolean) => void>();
  private observer: IntersectionObserver | null = null;

  constructor(private readonly margin: number) {}

  /** The scroll container is the nearest ancestor with `data-scroll-container`. */
  observe(element: Element, listener: (near: boolean) => void): () => void {
    this.observer ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.listeners.get(entry.target)?.(entry.isIntersecting);
      },
      { root: element.closest("[data-scroll-container]"), rootMargin: `${this.margin}px 0px` },
    );
    this.listeners.set(element, listener);
    this.observer.observe(element);
    return () => {
      this.listeners.delete(element);
      this.observer?.unobserve(element);
      if (this.listeners.size) return;
      this.observer?.disconnect();
      this.observer = null;
    };
  }
}

/** Whether the user is typing, has the focus, or selects text in there. */
function isInUse(element: Element): boolean {
  if (element.contains(document.activeElement) || element.querySelector("textarea")) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

interface ChunkProps {
  observer: VisibilityObserver;
  as?: "div" | "ul";
  className?: string | undefined;
  /** The height, if it is known without rendering. */
  height?: number;
  /** Renders the children wherever the chunk is. */
  always?: boolean;
  children: () => ReactNode;
}

/** Renders its children while it is near the viewport; initially too, unless its height is known. */
export function Chunk({ observer, as: Tag = "div", className, height: known, always, children }: ChunkProps) {
  const box = useRef<HTMLDivElement & HTMLUListElement>(null);
  const [hiddenHeight, setHiddenHeight] = useState<number | null>(known ?? null); // null while rendered
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    return observer.observe(element, (near) => {
      if (near) setHiddenHeight(null);
      else if (!isInUse(element)) setHiddenHeight((height) => height ?? element.getBoundingClientRect().height);
    });
  }, [observer]);
  const height = always || hiddenHeight === null ? null : (known ?? hiddenHeight);
  return (
    <Tag ref={box} className={className} style={{ height: height === null ? "" : `${height}px` }}>
      {height === null && children()}
    </Tag>
  );
}

const expandedCards = new WeakMap<object, boolean>();

/** Whether the user expanded a card; null without a choice. Survives the unmounting of the card's chunk. */
export function useExpanded(card: object): [boolean | null, (expanded: boolean) => void] {
  const [expanded, setExpanded] = useState<boolean | null>(() => expandedCards.get(card) ?? null);
  const choose = (to: boolean) => {
    expandedCards.set(card, to);
    setExpanded(to);
  };
  return [expanded, choose];
}

/** Splits into chunks of `size`, counted from the item at `anchor`: items added before it move no chunk boundary. */
export function toChunks<T>(items: readonly T[], size: number, anchor = 0): { key: number; items: readonly T[] }[] {
  const chunks: { key: number; items: readonly T[] }[] = [];
  for (let from = 0; from < items.length; ) {
    const key = Math.floor((from - anchor) / size);
    const to = Math.min(items.length, (key + 1) * size + anchor);
    chunks.push({ key, items: items.slice(from, to) });
    from = to;
  }
  return chunks;
}

// Choosing several items of a list, one by one or from one to another.

/** Adds or removes an item; with `anchor`, all from there to the item become as the item becomes. */
export function toggleSelected(
  selected: ReadonlySet<string>,
  id: string,
  order: readonly string[],
  anchor: string | null,
): ReadonlySet<string> {
  const ends = [order.indexOf(anchor ?? id), order.indexOf(id)].sort((a, b) => a - b);
  const [from = -1, to = -1] = ends;
  const touched = from < 0 ? [id] : order.slice(from, to + 1);
  const result = new Set(selected);
  for (const each of touched) {
    if (selected.has(id)) result.delete(each);
    else result.add(each);
  }
  return result;
}

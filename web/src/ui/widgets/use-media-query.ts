import { useSyncExternalStore } from "react";

export function useMediaQuery(text: string): boolean {
  const query = matchMedia(text);
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}

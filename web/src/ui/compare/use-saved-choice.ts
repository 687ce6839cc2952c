import { useEffect, useState } from "react";
import { useApp } from "../context.ts";

/** A part of the form that this tab keeps when it is reloaded. */
export function useSavedChoice<T>(name: string, initial: T): readonly [T, (value: T) => void] {
  const { tabStorage } = useApp().env;
  const key = `holdfast.compare.${name}`;
  const [value, setValue] = useState<T>(() => {
    try {
      return JSON.parse(tabStorage?.getItem(key) ?? "null") ?? initial;
    } catch {
      return initial;
    }
  });
  useEffect(() => {
    try {
      tabStorage?.setItem(key, JSON.stringify(value));
    } catch {
      // Storage is full or disabled: the form is empty after a reload.
    }
  }, [tabStorage, key, value]);
  return [value, setValue];
}

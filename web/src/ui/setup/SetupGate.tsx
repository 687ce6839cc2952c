// Offers to connect a model before the first chat. When it is needed: server/routes/setup.py.

import { type ReactNode, useEffect, useState } from "react";
import type { SetupResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { lazyComponent } from "../lazy-load.ts";

export const Setup = lazyComponent(() => import("./Setup.tsx"));
const STORAGE_KEY = "holdfast.setup-done";

/** Shows `children`, or the setup in their place while the server says that it is needed. */
export function SetupGate({ children }: { children: ReactNode }) {
  const { api, env } = useApp();
  // A page that has seen the chat before shows it without waiting for the server.
  const [needed, setNeeded] = useState(() => (env.storage?.getItem(STORAGE_KEY) ? false : null));
  useEffect(() => {
    const settle = (isNeeded: boolean) => {
      setNeeded(isNeeded);
      if (isNeeded) env.storage?.removeItem(STORAGE_KEY);
      else env.storage?.setItem(STORAGE_KEY, "1");
    };
    api.get<SetupResponse>("/api/setup").then(
      (setup) => settle(setup.needed),
      () => setNeeded((known) => known ?? false),
    );
  }, [api, env]);
  if (needed === null) return null;
  return needed ? <Setup onDone={() => setNeeded(false)} /> : children;
}

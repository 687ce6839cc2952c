import { useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { buttonClass } from "../widgets/buttons.tsx";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import type { SettingsProps } from "./use-settings.ts";

export function About({ settings }: SettingsProps) {
  const { api } = useApp();
  const [health, setHealth] = useState<{ text: string; ok: boolean } | null>(null);
  useEffect(() => {
    api.get("/readyz").then(
      () => setHealth({ text: "Server is healthy", ok: true }),
      (error: unknown) => setHealth({ text: errorMessage(error), ok: false }),
    );
  }, [api]);
  return (
    <ItemList>
      <Item
        status={health ? { text: health.ok ? "Healthy" : "Unhealthy", kind: health.ok ? "good" : "bad" } : undefined}
        title={<span role="status">{health?.text ?? "Checking…"}</span>}
        facts={[settings && `Version ${settings.version}`]}
      >
        <a className={buttonClass(undefined, true)} href={withRoot("/docs")}>
          API reference
        </a>
        <a className={buttonClass(undefined, true)} href={withRoot("/metrics")}>
          Metrics
        </a>
        <a className={buttonClass(undefined, true)} href={withRoot("/static/app/third-party-notices.txt")}>
          Licenses
        </a>
      </Item>
    </ItemList>
  );
}

import { useEffect, useState } from "react";
import type { Problem } from "../../core/api.ts";
import { useApp } from "../context.ts";
import { Row, Rows } from "../Rows.tsx";
import type { SettingsProps } from "./use.ts";

export function About({ settings }: SettingsProps) {
  const { api } = useApp();
  const [health, setHealth] = useState<{ text: string; ok: boolean } | null>(null);
  useEffect(() => {
    api.get("/readyz").then(
      () => setHealth({ text: "Storage answers and turns are taken.", ok: true }),
      (error: Problem) => setHealth({ text: error.message, ok: false }),
    );
  }, [api]);
  return (
    <>
      <p>Holdfast keeps every word in a journal before it shows it.</p>
      <Rows>
        <Row
          status={health ? { text: health.ok ? "healthy" : "ill", kind: health.ok ? "good" : "bad" } : undefined}
          title={<span role="status">{health?.text ?? "Asking …"}</span>}
          facts={[settings && `Version ${settings.version}`]}
        >
          <a className="button small" href="/docs">
            API
          </a>
          <a className="button small" href="/metrics">
            Metrics
          </a>
        </Row>
      </Rows>
    </>
  );
}

import type { ReactNode } from "react";

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="setting" aria-label={title}>
      <h2 className="section">{title}</h2>
      {children}
    </section>
  );
}

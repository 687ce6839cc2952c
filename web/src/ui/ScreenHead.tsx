import type { ReactNode } from "react";
import { toggleSidebar } from "./shell.ts";
import { IconButton } from "./widgets.tsx";

export function ScreenHead({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <header className="head">
      <IconButton name="Show sessions" icon="menu" className="only-narrow" onClick={toggleSidebar} />
      <h1 className="head-title">{title}</h1>
      {children}
    </header>
  );
}

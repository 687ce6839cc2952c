import { lazyComponent } from "../lazy-load.ts";

export const PersonaLabel = lazyComponent(() => import("./PersonaLabel.tsx"));

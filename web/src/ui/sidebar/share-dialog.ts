import { lazyOverlay } from "../widgets/lazy-overlay.tsx";

export const ShareDialog = lazyOverlay(() => import("./ShareDialog.tsx"));

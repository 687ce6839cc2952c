// A part of the page that is loaded after the rest, and missed by nobody until then or if it fails.

import { type ReactNode, Suspense } from "react";
import { ErrorBoundary } from "../ErrorBoundary.tsx";

export const LazyPart = ({ children }: { children: ReactNode }) => (
  <ErrorBoundary fallback={null}>
    <Suspense fallback={null}>{children}</Suspense>
  </ErrorBoundary>
);

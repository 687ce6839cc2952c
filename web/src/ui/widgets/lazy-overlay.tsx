// Loads dialogs, panels and cards on demand, so that the first load is small. Nothing is shown in their place meanwhile.
// One that cannot be shown is closed, and loaded anew when it is opened again.

import {
  type ComponentType,
  type JSX,
  type LazyExoticComponent,
  lazy,
  type ReactNode,
  Suspense,
  useState,
} from "react";
import { useApp } from "../context.ts";
import { ErrorBoundary } from "../ErrorBoundary.tsx";
import { loadChunk } from "../lazy-load.ts";
import { Alert } from "./Alert.tsx";

/** Chunks that are fetched soon after the page is shown: they work also when the server is away. */
const preloads: (() => Promise<unknown>)[] = [];

/** A component that is loaded when it is first rendered, or shortly after the page was shown. `close` closes it if it
 * has no `onClose`; without both, an error message takes its place if it cannot be shown. */
export function lazyOverlay<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  close?: () => void,
): (props: Props & { onClose?: () => void }) => JSX.Element {
  preloads.push(load);
  let next: LazyExoticComponent<ComponentType<Props>>;
  const renew = () => {
    next = lazy(() =>
      loadChunk(load).catch((error) => {
        renew(); // this one fails forever
        throw error;
      }),
    );
  };
  renew();
  return (props) => {
    const [Loaded] = useState(() => next);
    const onClose = props.onClose ?? close;
    const loaded = (
      <Suspense fallback={null}>
        <Loaded {...(props as Props & JSX.IntrinsicAttributes)} />
      </Suspense>
    );
    return onClose ? (
      <ClosedOnError onClose={onClose}>{loaded}</ClosedOnError>
    ) : (
      <ErrorBoundary
        fallback={<Alert text="This part of the page could not be shown. Reload the page to try again." />}
      >
        {loaded}
      </ErrorBoundary>
    );
  };
}

function ClosedOnError({ onClose, children }: { onClose: () => void; children: ReactNode }): JSX.Element {
  const { toasts } = useApp();
  const onError = () => {
    onClose();
    toasts.show("This could not be opened. Try again, or reload the page.");
  };
  return (
    <ErrorBoundary fallback={null} onError={onError}>
      {children}
    </ErrorBoundary>
  );
}

export function preloadOverlays(): void {
  for (const load of preloads) void load().catch(() => undefined); // loaded when it is needed
}

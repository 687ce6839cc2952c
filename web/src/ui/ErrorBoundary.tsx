import { Component, type ReactNode } from "react";
import { Button } from "./widgets/buttons.tsx";
import { CenteredScreen } from "./widgets/Screen.tsx";

interface Props {
  children: ReactNode;
  /** Shown instead of the default message. */
  fallback?: ReactNode;
  onError?: () => void;
}

/** Keeps an error in one part of the page from breaking the rest. */
export class ErrorBoundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  override componentDidCatch() {
    this.props.onError?.();
  }
  override render() {
    if (!this.state.failed) return this.props.children;
    if (this.props.fallback !== undefined) return this.props.fallback;
    return (
      <CenteredScreen role="alert">
        <h1>Something went wrong</h1>
        <p>Your chats are safe on the server. Reload the page to continue.</p>
        <Button variant="primary" onClick={() => location.reload()}>
          Reload
        </Button>
      </CenteredScreen>
    );
  }
}

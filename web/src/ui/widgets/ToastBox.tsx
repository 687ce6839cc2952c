import { useApp, useStore } from "../context.ts";
import { Button, IconButton } from "./buttons.tsx";
import styles from "./ToastBox.module.css";

/** Shows what was just done. The status region is always there, so that screen readers announce what appears in it. */
export function ToastBox() {
  const { toasts } = useApp();
  const toast = useStore(toasts.state);
  const { action } = toast ?? {};
  return (
    <div className={styles.region} role="status" aria-label="Confirmation">
      {toast && (
        <div className={styles.toast}>
          <span>{toast.text}</span>
          {action && (
            <Button
              small
              onClick={() => {
                toasts.dismiss();
                action.run();
              }}
            >
              {action.name}
            </Button>
          )}
          <IconButton name="Dismiss" icon="close" onClick={toasts.dismiss} />
        </div>
      )}
    </div>
  );
}

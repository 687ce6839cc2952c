import styles from "./Alert.module.css";
import { IconButton } from "./buttons.tsx";
import { Advice } from "./InlineCode.tsx";

/** An error message, dismissible if `onDismiss` is given. */
export function Alert({ text, onDismiss }: { text: string; onDismiss?: () => void }) {
  return (
    <div className={styles.alert} role="alert">
      <span>
        <Advice text={text} />
      </span>
      {onDismiss && <IconButton name="Dismiss" icon="close" onClick={onDismiss} />}
    </div>
  );
}

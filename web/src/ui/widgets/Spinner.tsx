import styles from "./Spinner.module.css";
import text from "./text.module.css";

export function Spinner({ name }: { name: string }) {
  return (
    <span className={styles.spinner} role="status">
      <span className={text.visuallyHidden}>{name}</span>
    </span>
  );
}

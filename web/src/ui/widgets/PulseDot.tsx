import styles from "./PulseDot.module.css";

/** A pulsing dot: something is in progress. */
export function PulseDot({ name }: { name?: string }) {
  return name ? (
    <span className={styles.dot} role="img" aria-label={name} />
  ) : (
    <span className={styles.dot} aria-hidden="true" />
  );
}

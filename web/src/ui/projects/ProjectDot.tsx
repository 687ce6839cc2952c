import styles from "./ProjectDot.module.css";

/** The color of a project; its name is beside it. */
export function ProjectDot({ color }: { color: string | null }) {
  return <span className={styles.dot} data-color={color ?? "gray"} aria-hidden="true" />;
}

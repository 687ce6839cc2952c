import { useApp, useStore } from "../context.ts";
import { Link } from "../router.tsx";
import text from "../widgets/text.module.css";
import styles from "./Welcome.module.css";

/** Shown in a new chat: a greeting, and which models are available. */
export function Welcome() {
  const { models, agents, loaded } = useStore(useApp().catalog);
  const names = models.filter((model) => model.available).map((model) => model.name);
  const available = `${names.length} ${names.length === 1 ? "model" : "models"} available: ${names.slice(0, 3).join(", ")}`;
  const programs = agents.filter((agent) => agent.is_program && agent.available).map((agent) => agent.name);
  return (
    <section className={styles.welcome} aria-label="Welcome">
      <img src="/static/icon.svg" alt="" width="56" height="56" />
      <h2>What can I help with?</h2>
      <p className={text.quiet}>Every word is saved before you see it.</p>
      {loaded && models.length > 0 && (
        <p className={text.quiet}>
          {names.length === 0 ? "No models available" : available}
          {names.length > 3 && "…"} <Link href="/settings">Manage models</Link>
        </p>
      )}
      {programs.length > 0 && (
        <p className={text.quiet}>
          Agents: {programs.slice(0, 3).join(", ")}
          {programs.length > 3 && "…"} <Link href="/settings#tools">Manage agents</Link>
        </p>
      )}
    </section>
  );
}

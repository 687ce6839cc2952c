import { offeredModels } from "../../core/models.ts";
import { useApp, useStore } from "../context.ts";
import { withRoot } from "../root-path.ts";
import { Link } from "../router.tsx";
import text from "../widgets/text.module.css";
import styles from "./Welcome.module.css";

/** Shown in a new chat: a greeting, and which models are available. */
export function Welcome() {
  const { models, agents, loaded } = useStore(useApp().catalog);
  const names = offeredModels(models)
    .filter((model) => model.available)
    .map((model) => model.name);
  const onlyDemo = !models.some((model) => model.available && model.provider !== "demo");
  const available = `${names.length} ${names.length === 1 ? "model" : "models"} available: ${names.slice(0, 3).join(", ")}`;
  const programs = agents.filter((agent) => agent.is_program && agent.available).map((agent) => agent.name);
  return (
    <section className={styles.welcome} aria-label="Welcome">
      <img src={withRoot("/static/icon.svg")} alt="" width="56" height="56" />
      <h2>What can I help with?</h2>
      <p className={text.quiet}>Every word is saved before you see it.</p>
      {loaded && models.length > 0 && onlyDemo && (
        <p className={text.quiet}>
          No language model is connected, so a scripted demo answers.
          <br />
          <Link href="/setup">Connect a model</Link>
        </p>
      )}
      {loaded && !onlyDemo && (
        <p className={text.quiet}>
          {available}
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

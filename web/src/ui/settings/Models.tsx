import { useState } from "react";
import type { Problem } from "../../core/api.ts";
import { useApp, useStore } from "../context.ts";
import { count } from "../format.ts";
import { ask } from "../shell.ts";
import { Section } from "./Section.tsx";
import type { SettingsProps } from "./use.ts";

export function Models({ settings, change, read }: SettingsProps) {
  const app = useApp();
  const { models, agents, defaultModel, loaded } = useStore(app.catalogue);
  return (
    <Section title="Models and agents">
      {loaded && !models.length && (
        <p className="quiet">
          No model was found. Set <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or{" "}
          <code>OPENAI_BASE_URL</code>, or start Ollama or LM Studio on this machine, then start Holdfast again.
        </p>
      )}
      <ul className="runs">
        {models.map((model) => (
          <li key={model.id} className="run">
            <span className={`status ${model.available ? "complete" : "failed"}`}>
              {model.available ? "ready" : "not now"}
            </span>
            <span className="run-title">{model.name}</span>
            <span className="quiet run-facts">
              {[model.provider, model.context && `${count(model.context)} tokens`, model.reason]
                .filter(Boolean)
                .join(" · ")}
            </span>
            {model.id === defaultModel ? (
              <strong className="run-facts">default</strong>
            ) : (
              <button
                type="button"
                className="button small"
                disabled={!model.available}
                aria-label={`Make ${model.name} the default`}
                onClick={() => void change({ default_model: model.id }).then(() => app.readCatalogue())}
              >
                Make default
              </button>
            )}
          </li>
        ))}
      </ul>
      <Keys settings={settings} change={change} read={read} />
      <p className="quiet">Agents: {agents.map((agent) => agent.name).join(", ") || "none"}.</p>
      <button type="button" className="button" onClick={() => void app.readCatalogue()}>
        Look again
      </button>
    </Section>
  );
}

/** Keys go in and never come out. */
function Keys({ settings, read }: SettingsProps) {
  const app = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const save = async (provider: string, remove: boolean) => {
    const key = remove ? null : await ask(`Key for ${provider}`, "Key", "", true);
    if (!remove && !key?.trim()) return;
    try {
      if (remove) await app.api.call("DELETE", `/api/settings/keys/${provider}`);
      else await app.api.call("PUT", `/api/settings/keys/${provider}`, { key: key?.trim() });
      setProblem(null);
    } catch (error) {
      setProblem((error as Problem).message);
    }
    await Promise.all([read(), app.readCatalogue()]);
  };
  if (!settings?.providers.length) return null;
  return (
    <>
      <h3 className="quiet">Keys of providers, kept on this machine</h3>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <ul className="runs">
        {settings.providers.map(({ name, has_key }) => (
          <li key={name} className="run">
            <span className="run-title">{name}</span>
            <span className="quiet run-facts">{has_key ? "has a key" : "no key"}</span>
            <button
              type="button"
              className="button small"
              aria-label={`${has_key ? "Replace" : "Set"} the key for ${name}`}
              onClick={() => void save(name, false)}
            >
              {has_key ? "Replace" : "Set key"}
            </button>
            {has_key && (
              <button
                type="button"
                className="button small"
                aria-label={`Remove the key for ${name}`}
                onClick={() => void save(name, true)}
              >
                Remove
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

import { useState } from "react";
import type { Problem } from "../../core/api.ts";
import type { Model } from "../../core/wire.ts";
import { useApp, useStore } from "../context.ts";
import { count, duration } from "../format.ts";
import { Action, Row, Rows } from "../Rows.tsx";
import { ask } from "../shell.ts";
import type { SettingsProps } from "./use.ts";

export function Models(props: SettingsProps) {
  const app = useApp();
  const { models, defaultModel, loaded } = useStore(app.catalogue);
  return (
    <>
      {loaded && !models.length && (
        <p className="quiet">
          No model was found. Set <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or{" "}
          <code>OPENAI_BASE_URL</code>, or start Ollama or LM Studio on this machine, then start Holdfast again.
        </p>
      )}
      <Rows label="Models">
        {models.map((model) => (
          <ModelRow
            key={model.id}
            model={model}
            isDefault={model.id === defaultModel}
            onDefault={() => void props.change({ default_model: model.id }).then(() => app.readCatalogue())}
          />
        ))}
      </Rows>
      <button type="button" className="button" onClick={() => void app.readCatalogue()}>
        Look again
      </button>
      <Keys {...props} />
    </>
  );
}

interface Tested {
  readonly ok: boolean;
  readonly answer: string | null;
  readonly reason: string | null;
  readonly took_ms: number;
}

interface ModelRowProps {
  model: Model;
  isDefault: boolean;
  onDefault: () => void;
}

function ModelRow({ model, isDefault, onDefault }: ModelRowProps) {
  const { api } = useApp();
  const [tested, setTested] = useState<Tested | "asking" | null>(null);
  const test = async () => {
    setTested("asking");
    try {
      setTested(await api.post<Tested>("/api/models/test", { model: model.id }));
    } catch (error) {
      setTested({ ok: false, answer: null, reason: (error as Problem).message, took_ms: 0 });
    }
  };
  return (
    <Row
      status={{ text: model.available ? "ready" : "not now", kind: model.available ? "good" : "bad" }}
      title={model.name}
      facts={[model.provider, model.context !== null && `${count(model.context)} tokens`, model.reason]}
      more={
        tested && (
          <p className={tested === "asking" || tested.ok ? "quiet" : "bad"} role="status">
            {tested === "asking"
              ? "Asking for a word …"
              : tested.ok
                ? `It said “${tested.answer?.slice(0, 60) || "nothing"}” after ${duration(tested.took_ms)}.`
                : tested.reason}
          </p>
        )
      }
    >
      <Action
        name="Test"
        of={model.name}
        disabled={!model.available || tested === "asking"}
        onClick={() => void test()}
      />
      {isDefault ? (
        <strong>default</strong>
      ) : (
        <Action name="Make default" of={model.name} disabled={!model.available} onClick={onDefault} />
      )}
    </Row>
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
      <h3 className="subsection">Keys of providers, kept on this machine</h3>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <Rows label="Keys">
        {settings.providers.map(({ name, has_key }) => (
          <Row key={name} title={name} facts={[has_key ? "has a key" : "no key"]}>
            <Action name={has_key ? "Replace key" : "Set key"} of={name} onClick={() => void save(name, false)} />
            {has_key && <Action name="Remove key" of={name} onClick={() => void save(name, true)} />}
          </Row>
        ))}
      </Rows>
    </>
  );
}

import { useEffect, useState } from "react";
import { errorMessage, problemOf } from "../../core/api.ts";
import type { ModelTestResponse, ProviderKeyResponse, ProviderResponse } from "../../core/api-types.ts";
import { offeredModels } from "../../core/models.ts";
import type { Model } from "../../core/types.ts";
import { useApp, useStore } from "../context.ts";
import { askConfirmation, askText } from "../dialogs.ts";
import { formatCount, formatDuration } from "../format.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button, buttonClass } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import { InlineCode } from "../widgets/InlineCode.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import type { SettingsProps } from "./use-settings.ts";

export function Models(props: SettingsProps) {
  const app = useApp();
  const { models, defaultModel, loaded } = useStore(app.catalog);
  const lastModel = useStore(app.newChat.lastModel);
  const picked = models.find(({ id }) => id === lastModel && id !== defaultModel);
  useEffect(() => app.checkCatalog(), [app]);
  return (
    <>
      {loaded && !models.length && (
        <p className={text.quiet}>
          No models found. Start Ollama or LM Studio on this computer and refresh, or connect a model.
        </p>
      )}
      {loaded && models.length > 0 && !picked && (
        <p className={text.quiet}>New chats use the model that you picked last, or else the default one.</p>
      )}
      {picked && (
        <p className={text.row}>
          <span className={text.quiet}>New chats start with the model that you picked last: {picked.name}.</span>
          <Button small onClick={() => app.newChat.forgetModel()}>
            Use the default again
          </Button>
        </p>
      )}
      <ItemList label="Models">
        {offeredModels(models, defaultModel).map((model) => (
          <ModelItem
            key={model.id}
            model={model}
            isDefault={model.id === defaultModel}
            onMakeDefault={() => {
              app.newChat.forgetModel();
              void props.change({ default_model: model.id }).then(() => app.loadCatalog());
            }}
          />
        ))}
      </ItemList>
      <div className={text.row}>
        <Link className={buttonClass()} href="/setup">
          Connect a model
        </Link>
        <RefreshButton />
      </div>
      <ApiKeys {...props} />
    </>
  );
}

function RefreshButton() {
  const app = useApp();
  const [state, setState] = useState<"refreshing" | "updated" | null>(null);
  const refresh = async () => {
    setState("refreshing");
    setState((await app.loadCatalog(true)) ? "updated" : null);
  };
  return (
    <>
      <Button disabled={state === "refreshing"} onClick={() => void refresh()}>
        {state === "refreshing" ? "Refreshing…" : "Refresh"}
      </Button>
      <span className={text.quiet} role="status">
        {state === "updated" ? "Updated just now" : ""}
      </span>
    </>
  );
}

const MAX_SHOWN_ANSWER = 60;

function describe({ ok, answer, reason, took_ms }: ModelTestResponse): string {
  if (!ok) return reason ?? "Test failed.";
  const whole = answer ?? "";
  const shown = whole.length > MAX_SHOWN_ANSWER ? `${whole.slice(0, MAX_SHOWN_ANSWER).trimEnd()}…` : whole;
  return `Answered “${shown}” in ${formatDuration(took_ms)}`;
}

function ModelItem({
  model,
  isDefault,
  onMakeDefault,
}: {
  model: Model;
  isDefault: boolean;
  onMakeDefault: () => void;
}) {
  const { api } = useApp();
  const { name, available } = model;
  const [result, setResult] = useState<ModelTestResponse | "testing" | null>(null);
  const test = async () => {
    setResult("testing");
    try {
      setResult(await api.post<ModelTestResponse>("/api/models/test", { model: model.id }));
    } catch (error) {
      setResult({ ok: false, answer: null, reason: errorMessage(error), took_ms: 0 });
    }
  };
  return (
    <Item
      status={available ? { text: "Available", kind: "good" } : { text: "Unavailable", kind: "bad" }}
      title={name}
      facts={[model.provider, model.context !== null && `${formatCount(model.context)}-token context`, model.reason]}
      details={
        result && (
          <p className={result === "testing" || result.ok ? text.quiet : text.error} role="status">
            <InlineCode text={result === "testing" ? "Testing…" : describe(result)} />
          </p>
        )
      }
    >
      <ItemAction name="Test" of={name} disabled={result === "testing"} onClick={() => void test()} />
      {isDefault ? (
        <strong>Default</strong>
      ) : (
        <ItemAction name="Make default" of={name} disabled={!available} onClick={onMakeDefault} />
      )}
    </Item>
  );
}

function describeKey({ key_source, key_variable }: ProviderResponse): string {
  if (key_source === "environment") return `Key from ${key_variable ?? "the environment"}`;
  if (key_source === "file") return "Key from holdfast.toml";
  return key_source === null ? "No key" : "Key set";
}

/** API keys can be set and removed; the server never returns them. */
function ApiKeys({ settings, reload }: SettingsProps) {
  const app = useApp();
  const [problem, setProblem] = useState<string | null>(null);
  const change = async (request: Promise<ProviderKeyResponse | undefined>) => {
    try {
      const saved = await request;
      setProblem(saved?.reason ? `Saved, but the key could not be verified: ${saved.reason}` : null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
    await Promise.all([reload(), app.loadCatalog()]);
  };
  const setKey = async ({ name, title, base_url }: ProviderResponse) => {
    const put = async (typed: string) => {
      const path = `/api/settings/keys/${name}`;
      const saved = await app.api.call<ProviderKeyResponse>("PUT", path, { key: typed.trim() });
      void change(Promise.resolve(saved));
    };
    await askText(`API key for ${title}`, `API key (sent to ${base_url})`, "", {
      secret: true,
      attempt: async (typed) => (await problemOf(put(typed)))?.replace(/^key: /, "") ?? null,
    });
  };
  const removeKey = async (provider: string) => {
    const detail = "Its models cannot be used until you set a key again.";
    if (!(await askConfirmation(`Remove the key of ${provider}?`, detail, "Remove key")).confirmed) return;
    await change(app.api.call<undefined>("DELETE", `/api/settings/keys/${provider}`));
  };
  const setImages = ({ name, images }: ProviderResponse) =>
    change(app.api.call<undefined>("PATCH", `/api/providers/${name}`, { images: !images }));
  const remove = async (name: string) => {
    const { confirmed } = await askConfirmation(`Remove ${name}?`, "Its address and key are deleted.", "Remove");
    if (confirmed) await change(app.api.call<undefined>("DELETE", `/api/providers/${name}`));
  };
  if (!settings?.providers.length) return null;
  return (
    <>
      <h3 className={text.subsectionTitle}>Provider API keys (stored on this server)</h3>
      {problem && <Alert text={problem} />}
      <ItemList label="API keys">
        {settings.providers.map((provider) => {
          const { name, has_key, key_source } = provider;
          return (
            <Item
              key={name}
              title={provider.title}
              facts={[describeKey(provider), provider.base_url]}
              details={
                provider.added && (
                  <label className={forms.checkbox}>
                    <input type="checkbox" checked={provider.images} onChange={() => void setImages(provider)} />
                    Its models can read images
                  </label>
                )
              }
            >
              <ItemAction name={has_key ? "Replace key" : "Set key"} of={name} onClick={() => void setKey(provider)} />
              {key_source === "settings" && (
                <ItemAction name="Remove key" of={name} onClick={() => void removeKey(name)} />
              )}
              {provider.added && <ItemAction name="Remove" of={name} onClick={() => void remove(name)} />}
            </Item>
          );
        })}
      </ItemList>
    </>
  );
}

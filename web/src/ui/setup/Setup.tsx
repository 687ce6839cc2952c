// The first screen: which models were found, and a form that connects another provider or server.

import { type FormEvent, type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { ApiError, errorMessage } from "../../core/api.ts";
import type {
  ConnectProviderRequest,
  ProviderCheckListResponse,
  ProviderCheckResponse,
  ProviderResponse,
  SettingsResponse,
  SetupResponse,
} from "../../core/api-types.ts";
import { readProgress } from "../../core/progress-stream.ts";
import { useApp, useStore } from "../context.ts";
import { formatSize } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { navigate } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import forms from "../widgets/forms.module.css";
import { Item, ItemList } from "../widgets/ItemList.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import { Spinner } from "../widgets/Spinner.tsx";
import text from "../widgets/text.module.css";
import styles from "./Setup.module.css";

const DEMO = "demo";
const LOCAL = "local";
const SHOWN_NAMES = 3;

/** Such as "3 models: a, b, c". */
function describeModels(names: readonly string[]): string {
  const rest = names.length - SHOWN_NAMES;
  const shown = names.slice(0, SHOWN_NAMES).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return `${names.length} ${names.length === 1 ? "model" : "models"}: ${shown}`;
}

export default function Setup({ onDone }: { onDone?: () => void }) {
  const app = useApp();
  const { models, defaultModel } = useStore(app.catalog);
  const [found, setFound] = useState<readonly ProviderCheckResponse[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const search = useCallback(async () => {
    setFound(null);
    try {
      setFound((await app.api.post<ProviderCheckListResponse>("/api/providers/discover")).items);
      setProblem(null);
    } catch (error) {
      setFound([]);
      setProblem(errorMessage(error));
    }
    await app.loadCatalog();
  }, [app]);
  useEffect(() => {
    void search();
  }, [search]);
  const usable = models.filter((model) => model.available && model.provider !== DEMO);
  const chosen = usable.find((model) => model.id === defaultModel);
  const finish = async () => {
    await app.api.post("/api/setup/done").catch(() => undefined); // it is offered again
    onDone?.();
    navigate("/");
  };
  const start = usable.length > 0 && (
    <Button variant="primary" onClick={() => void finish()}>
      Start chatting
    </Button>
  );
  const skip = !usable.length && <Button onClick={() => void finish()}>Skip for now</Button>;
  return (
    <ScrollingScreen title="Connect a model" actions={skip}>
      <div className={styles.setup}>
        <header className={styles.intro}>
          <img src={withRoot("/static/icon.svg")} alt="" width="48" height="48" />
          <h2>Welcome to Holdfast</h2>
          <p className={text.quiet}>Connect a language model to chat with. You can change this later in Settings.</p>
        </header>
        {problem && <Alert text={problem} />}
        <FoundModels
          found={found}
          local={models.find((model) => model.provider === LOCAL)}
          onDownloaded={() => void search()}
        >
          {start}
          <Button disabled={found === null} onClick={() => void search()}>
            Search again
          </Button>
          {chosen && <span className={text.quiet}>Default model: {chosen.name}</span>}
        </FoundModels>
        <ConnectForm isFirst={!usable.length} onConnected={search} />
      </div>
    </ScrollingScreen>
  );
}

interface FoundProps {
  /** Null while the server looks for them. */
  found: readonly ProviderCheckResponse[] | null;
  local: { readonly name: string; readonly available: boolean; readonly reason: string | null } | undefined;
  onDownloaded: () => void;
  /** What can be done next. */
  children: ReactNode;
}

function FoundModels({ found, local, onDownloaded, children }: FoundProps) {
  const nothing = found?.length === 0 && !local?.available;
  return (
    <section className={styles.section} aria-label="Models found">
      <h3>Models found</h3>
      <div role="status" aria-busy={found === null}>
        {found === null && (
          <p className={text.row}>
            <Spinner name="Searching" /> Searching this computer for model servers…
          </p>
        )}
        {nothing && (
          <p className={text.quiet}>
            None yet. Holdfast looked for Ollama, LM Studio, llama.cpp and vLLM on the computer it runs on. Start one of
            them and search again, or connect a provider below.
          </p>
        )}
        <ItemList label="Models found">
          {found?.map((check) => (
            <Item
              key={check.name}
              status={check.reason === null ? { text: "Ready", kind: "good" } : { text: "Not ready", kind: "warning" }}
              title={check.title}
              facts={[check.reason ?? describeModels(check.models), check.base_url]}
            />
          ))}
          {found && local?.available && (
            <Item
              status={{ text: "Ready", kind: "good" }}
              title={local.name}
              facts={["A very small model, to try things without a provider"]}
            />
          )}
        </ItemList>
      </div>
      {nothing && <LocalModelDownload onDone={onDownloaded} />}
      <div className={text.row}>{children}</div>
    </section>
  );
}

/** Offers the small model that runs inside Holdfast, where it can be downloaded. */
function LocalModelDownload({ onDone }: { onDone: () => void }) {
  const { api } = useApp();
  const [size, setSize] = useState<number | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    api.get<SetupResponse>("/api/setup").then(
      (setup) => setSize(setup.download_size),
      () => undefined,
    );
  }, [api]);
  const download = async () => {
    setShare(0);
    setProblem(null);
    try {
      const stream = await api.startTask("/api/models/download");
      const onProgress = ({ done, total }: { done: number; total: number }) => setShare(done / total);
      await readProgress(stream, onProgress, "The connection was lost. Download it again.");
      onDone();
    } catch (error) {
      setProblem(errorMessage(error));
    }
    setShare(null);
  };
  if (size === null) return null;
  return (
    <>
      {problem && <Alert text={problem} />}
      <div className={text.row}>
        {share === null ? (
          <Button onClick={() => void download()}>Download a small model ({formatSize(size)})</Button>
        ) : (
          <progress aria-label="Downloading the small model" value={share} />
        )}
        <span className={text.quiet}>
          {share === null
            ? "It runs inside Holdfast, to try things without a provider."
            : `Downloading… ${Math.floor(share * 100)}%`}
        </span>
      </div>
    </>
  );
}

const OTHER = "";
const showProblem = (box: HTMLElement | null) => box?.scrollIntoView({ block: "nearest" });

function ConnectForm({ isFirst, onConnected }: { isFirst: boolean; onConnected: () => Promise<void> }) {
  const { api } = useApp();
  const form = useRef<HTMLFormElement>(null);
  const [providers, setProviders] = useState<readonly ProviderResponse[]>([]);
  const [name, setName] = useState("openai");
  const [testing, setTesting] = useState(false);
  const [connected, setConnected] = useState<ProviderCheckResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const keep = (settings: SettingsResponse) => setProviders(settings.providers.filter(({ added }) => !added));
    api.get<SettingsResponse>("/api/settings").then(keep, () => undefined);
  }, [api]);
  const provider = providers.find((each) => each.name === name);
  const connect = async (event: FormEvent) => {
    event.preventDefault();
    if (!form.current || testing) return;
    const fields = new FormData(form.current);
    const field = (key: string) => String(fields.get(key) ?? "").trim();
    const body: ConnectProviderRequest = {
      ...(provider ? { provider: provider.name } : { base_url: field("base_url") }),
      ...(!provider && field("name") ? { name: field("name") } : {}),
      ...(field("key") ? { key: field("key") } : {}),
    };
    setTesting(true);
    setConnected(null);
    setProblem(null);
    try {
      const checked = await api.post<ProviderCheckResponse>("/api/providers", body);
      if (checked.models.length) {
        setConnected(checked);
        form.current?.reset();
        await onConnected();
      } else setProblem(checked.reason ?? "No models were found.");
    } catch (error) {
      const invalid = !provider && error instanceof ApiError && error.status === 422 && error.field !== "name";
      setProblem(invalid ? "Enter a valid address, such as http://192.168.1.20:11434." : errorMessage(error));
    } finally {
      setTesting(false);
    }
  };
  return (
    <section className={styles.section} aria-label="Add a provider">
      <h3>Add a provider</h3>
      <form ref={form} className={styles.form} onSubmit={(event) => void connect(event)}>
        <div className={styles.field}>
          <label htmlFor="setup-provider">Provider</label>
          <select
            id="setup-provider"
            className={forms.field}
            value={provider ? name : OTHER}
            onChange={(event) => {
              setName(event.target.value);
              setConnected(null);
              setProblem(null);
            }}
          >
            <option value={OTHER}>Ollama, LM Studio or another server</option>
            {providers.map((each) => (
              <option key={each.name} value={each.name}>
                {each.title}
              </option>
            ))}
          </select>
        </div>
        {!provider && (
          <>
            <label>
              Address
              <input
                name="base_url"
                inputMode="url"
                autoCapitalize="none"
                autoComplete="off"
                spellCheck={false}
                maxLength={2000}
                placeholder="http://192.168.1.20:11434"
                required
              />
            </label>
            <label>
              Name (optional)
              <input
                name="name"
                autoCapitalize="none"
                autoComplete="off"
                spellCheck={false}
                maxLength={40}
                pattern="[a-z0-9][a-z0-9\-]*"
                aria-describedby="setup-name"
                placeholder="my-server"
              />
            </label>
            <p id="setup-name" className={text.quiet}>
              Lowercase letters, digits and hyphens. The names of its models start with it.
            </p>
          </>
        )}
        <label>
          {provider ? "API key" : "API key (optional)"}
          <input
            key={name} // a key that was typed is for one provider only
            name="key"
            type="password"
            autoComplete="off"
            maxLength={1000}
            aria-describedby="setup-key"
            required={provider !== undefined}
          />
        </label>
        <p id="setup-key" className={text.quiet}>
          Stored on this server and sent only to {provider ? provider.base_url : "that address"}.
        </p>
        {problem && (
          <div ref={showProblem}>
            <Alert text={problem} />
          </div>
        )}
        <p role="status">{connected && `Connected to ${connected.title}. ${describeModels(connected.models)}.`}</p>
        <div>
          <Button type="submit" variant={isFirst ? "primary" : undefined} disabled={testing}>
            {testing ? "Testing…" : "Test and connect"}
          </Button>
        </div>
      </form>
    </section>
  );
}

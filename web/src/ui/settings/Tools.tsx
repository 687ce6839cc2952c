import { useEffect, useState } from "react";
import type { Page } from "../../core/wire.ts";
import { useApp, useStore } from "../context.ts";
import { Action, Row, Rows } from "../Rows.tsx";
import { ask } from "../shell.ts";
import type { Rule, SettingsProps } from "./use.ts";

const RULES: readonly (readonly [Rule, string])[] = [
  ["allow", "Allow"],
  ["ask", "Ask me"],
  ["deny", "Deny"],
];
const WORDS: Readonly<Record<Rule, string>> = { allow: "allowed", ask: "asks", deny: "denied" };

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly rule: Rule;
  readonly server: string | null;
}

export function Tools({ settings, change, read }: SettingsProps) {
  const { api, catalogue } = useApp();
  const { agents } = useStore(catalogue);
  const [tools, setTools] = useState<readonly Tool[]>([]);
  useEffect(() => {
    api.get<Page<Tool>>("/api/tools").then(
      ({ items }) => setTools(items),
      () => undefined,
    );
  }, [api]);
  const rules = settings?.tools ?? {};
  const named = new Set(tools.map((tool) => tool.name));
  const patterns = Object.keys(rules).filter((name) => !named.has(name));
  const set = (name: string, rule: Rule | "") => {
    const { [name]: _, ...others } = rules;
    return change({ tools: rule === "" ? others : { ...others, [name]: rule } });
  };
  const add = async () => {
    const name = await ask("A rule for several tools", "A pattern like github__*, or the name of a tool", "");
    if (name?.trim()) await set(name.trim(), "ask");
  };
  const revoke = async (tool: string, scope: string) => {
    await api.post("/api/settings/grants/revoke", { tool, scope }).catch(() => undefined);
    await read();
  };
  return (
    <>
      <Rows label="Agents">
        {agents.map((agent) => (
          <Row
            key={agent.name}
            title={agent.name}
            facts={[
              agent.can_continue ? "goes on where it was after a restart or a decision" : "begins anew after a restart",
            ]}
          />
        ))}
      </Rows>
      <h3 className="subsection">What agents may do</h3>
      <p className="quiet">
        A tool without a rule does as it is made: what only looks is allowed, what changes things asks.
      </p>
      <Rows label="Tools">
        {tools.map((tool) => (
          <Row
            key={tool.name}
            title={<code>{tool.name}</code>}
            facts={[tool.server && `from ${tool.server}`, tool.description.split(/(?<=\.)\s/, 1)[0]]}
          >
            <RuleBox name={tool.name} rule={rules[tool.name] ?? ""} made={tool.rule} onChange={set} />
          </Row>
        ))}
        {patterns.map((name) => (
          <Row key={name} title={<code>{name}</code>} facts={["a rule of yours"]}>
            <RuleBox name={name} rule={rules[name] ?? ""} made={null} onChange={set} />
          </Row>
        ))}
      </Rows>
      <button type="button" className="button" onClick={() => void add()}>
        Add a rule
      </button>
      {settings && settings.grants.length > 0 && <h3 className="subsection">Allowed for good</h3>}
      <Rows label="Allowed for good">
        {settings?.grants.map(({ tool, scope }) => (
          <Row key={tool + scope} title={<code>{tool}</code>} facts={[scope || "always allowed"]}>
            <Action name="Ask again" of={tool} onClick={() => void revoke(tool, scope)} />
          </Row>
        ))}
      </Rows>
    </>
  );
}

interface RuleBoxProps {
  name: string;
  rule: Rule | "";
  /** What the tool does without a rule; null for a pattern. */
  made: Rule | null;
  onChange: (name: string, rule: Rule | "") => Promise<void>;
}

function RuleBox({ name, rule, made, onChange }: RuleBoxProps) {
  return (
    <select
      className="field small"
      aria-label={`Rule for ${name}`}
      value={rule}
      onChange={(event) => void onChange(name, event.target.value as Rule | "")}
    >
      <option value="">{made ? `As made: ${WORDS[made]}` : "No rule"}</option>
      {RULES.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

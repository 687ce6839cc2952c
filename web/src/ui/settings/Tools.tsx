import { useApp } from "../context.ts";
import { ask } from "../shell.ts";
import { Section } from "./Section.tsx";
import type { Rule, SettingsProps } from "./use.ts";

const RULES: readonly (readonly [Rule, string])[] = [
  ["allow", "Allow"],
  ["ask", "Ask me"],
  ["deny", "Deny"],
];

export function Tools({ settings, change, read }: SettingsProps) {
  const { api } = useApp();
  const rules = settings?.tools ?? {};
  const set = (name: string, rule: Rule | null) => {
    const { [name]: _, ...others } = rules;
    return change({ tools: rule === null ? others : { ...others, [name]: rule } });
  };
  const add = async () => {
    const name = await ask("A rule for a tool", "Name of the tool, or a pattern like github__*", "");
    if (name?.trim()) await set(name.trim(), "ask");
  };
  const revoke = async (tool: string, scope: string) => {
    await api.post("/api/settings/grants/revoke", { tool, scope }).catch(() => undefined);
    await read();
  };
  return (
    <Section title="Tools">
      <p className="quiet">
        A tool without a rule does as it is made: what only looks is allowed, what changes things asks.
      </p>
      <ul className="runs">
        {Object.entries(rules).map(([name, rule]) => (
          <li key={name} className="run">
            <span className="run-title">{name}</span>
            <select
              className="field"
              aria-label={`Rule for ${name}`}
              value={rule}
              onChange={(event) => void set(name, event.target.value as Rule)}
            >
              {RULES.map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
            <button
              type="button"
              className="button small"
              aria-label={`Remove the rule for ${name}`}
              onClick={() => void set(name, null)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <ul className="runs" aria-label="Allowed for good">
        {settings?.grants.map(({ tool, scope }) => (
          <li key={tool + scope} className="run">
            <span className="run-title">{tool}</span>
            <span className="quiet run-facts">always allowed{scope ? `: ${scope}` : ""}</span>
            <button
              type="button"
              className="button small"
              aria-label={`Ask again about ${tool}`}
              onClick={() => void revoke(tool, scope)}
            >
              Ask again
            </button>
          </li>
        ))}
      </ul>
      <button type="button" className="button" onClick={() => void add()}>
        Add a rule
      </button>
    </Section>
  );
}

// Agents, and the rules for their tools.

import type { ToolResponse } from "../../core/api-types.ts";
import { useApp } from "../context.ts";
import { askText } from "../dialogs.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";
import { Agents } from "./Agents.tsx";
import { type Rule, type SettingsProps, useItems } from "./use-settings.ts";

const RULES: readonly (readonly [Rule, string])[] = [
  ["allow", "Allow"],
  ["ask", "Ask"],
  ["deny", "Deny"],
];

function confinement({ sandbox }: ToolResponse): string | null {
  if (!sandbox) return null;
  if (!sandbox.active) return `Not sandboxed: ${sandbox.reason}`;
  return sandbox.network ? "Sandboxed" : "Sandboxed, no network";
}

/** Whether a rule's pattern, as `fnmatch` reads it, matches a tool. */
function matches(pattern: string, tool: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^");
  try {
    return new RegExp(`^${source}$`).test(tool);
  } catch {
    return false; // such as a bracket without its end
  }
}

export function Tools({ settings, change, reload }: SettingsProps) {
  const { api } = useApp();
  const [tools] = useItems<ToolResponse>("/api/tools");
  const rules = settings?.tools ?? {};
  const patterns = Object.keys(rules).filter((name) => !tools.some((tool) => tool.name === name));
  const setRule = (name: string, rule: Rule | "") => {
    const { [name]: _, ...others } = rules;
    return change({ tools: rule === "" ? others : { ...others, [name]: rule } });
  };
  const addRule = async () => {
    const name = (await askText("Add rule", "Tool name or pattern, for example github__*", ""))?.trim();
    if (name) await setRule(name, "ask");
  };
  const revoke = async (tool: string, scope: string) => {
    await api.post("/api/settings/grants/revoke", { tool, scope }).catch(() => undefined);
    await reload();
  };
  return (
    <>
      <Agents passwordSet={settings?.password_set ?? false} />
      <h3 className={text.subsectionTitle}>Tool permissions</h3>
      <p className={text.quiet}>
        Tools without a rule use their default: read-only tools run, tools that change something ask first.
      </p>
      <ItemList label="Tools">
        {tools.map((tool) => (
          <Item
            key={tool.name}
            title={<code>{tool.name}</code>}
            facts={[tool.server && `From ${tool.server}`, tool.description.split(/(?<=\.)\s/, 1)[0], confinement(tool)]}
          >
            <RuleSelect
              name={tool.name}
              rule={rules[tool.name] ?? ""}
              fallback={`Default: ${tool.rule}`}
              neverAllow={tool.name === "shell" && settings?.password_set === false}
              onChange={setRule}
            />
          </Item>
        ))}
        {patterns.map((name) => (
          <Item
            key={name}
            title={<code>{name}</code>}
            facts={[tools.some((tool) => matches(name, tool.name)) ? "Custom rule" : "Custom rule: matches no tool"]}
          >
            <RuleSelect name={name} rule={rules[name] ?? ""} fallback="No rule" onChange={setRule} />
          </Item>
        ))}
      </ItemList>
      <Button onClick={() => void addRule()}>Add rule</Button>
      {settings && settings.grants.length > 0 && <h3 className={text.subsectionTitle}>Always allowed</h3>}
      <ItemList label="Always allowed">
        {settings?.grants.map(({ tool, scope }) => (
          <Item
            key={tool + scope}
            title={<code>{tool}</code>}
            facts={[scope || "All uses", rules[tool] && `Overridden by its rule: ${rules[tool]}`]}
          >
            <ItemAction name="Revoke" of={tool} onClick={() => void revoke(tool, scope)} />
          </Item>
        ))}
      </ItemList>
    </>
  );
}

interface RuleSelectProps {
  name: string;
  rule: Rule | "";
  /** The label of the choice without a rule. */
  fallback: string;
  /** Without a password, the shell asks in every chat. */
  neverAllow?: boolean;
  onChange: (name: string, rule: Rule | "") => Promise<void>;
}

function RuleSelect({ name, rule, fallback, neverAllow = false, onChange }: RuleSelectProps) {
  return (
    <select
      className={classNames(forms.field, forms.small)}
      aria-label={`Rule for ${name}`}
      value={rule}
      onChange={(event) => void onChange(name, event.target.value as Rule | "")}
    >
      <option value="">{fallback}</option>
      {RULES.map(([value, label]) => (
        <option key={value} value={value} disabled={neverAllow && value === "allow"}>
          {neverAllow && value === "allow" ? "Allow (needs a password)" : label}
        </option>
      ))}
    </select>
  );
}

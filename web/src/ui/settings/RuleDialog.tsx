import { type FormEvent, useId, useState } from "react";
import { Button, FormButtons } from "../widgets/buttons.tsx";
import { Dialog, dialogBodyClass } from "../widgets/Dialog.tsx";
import forms from "../widgets/forms.module.css";
import { Segments } from "../widgets/Segments.tsx";
import type { Rule } from "./use-settings.ts";

const RULES: readonly (readonly [Rule, string])[] = [
  ["allow", "Allow"],
  ["ask", "Ask"],
  ["deny", "Deny"],
];

interface Props {
  onAdd: (name: string, rule: Rule) => void;
  onClose: () => void;
}

/** Adds a rule for a tool, or for all tools that match a pattern. */
export function RuleDialog({ onAdd, onClose }: Props) {
  const [rule, setRule] = useState<Rule>("ask");
  const hint = useId();
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    onClose();
    if (name) onAdd(name, rule);
  };
  return (
    <Dialog name="Add rule" onClose={onClose}>
      <form className={dialogBodyClass} onSubmit={add}>
        <h2>Add rule</h2>
        <label>
          Tool name or pattern
          <input name="name" required autoComplete="off" maxLength={200} aria-describedby={hint} />
          <span id={hint} className={forms.hint}>
            For example github__*, for all tools of the MCP server github
          </span>
        </label>
        <Segments label="Rule" options={RULES} value={rule} onChange={setRule} />
        <FormButtons>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Add
          </Button>
        </FormButtons>
      </form>
    </Dialog>
  );
}

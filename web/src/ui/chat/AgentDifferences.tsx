// The options of an agent program that were changed in a chat, above the message.

import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./AgentOptions.module.css";
import type { AgentChoices } from "./AgentOptions.tsx";
import type { AgentOption, OptionValue } from "./use-agent-options.ts";

const changedOptions = (options: readonly AgentOption[]) =>
  options.filter(({ value, default: usual }) => value !== usual);

/** The end of a path, which says most. */
const lastName = (path: string): string => path.split("/").findLast(Boolean) ?? path;

export default function AgentDifferences({ cwd, options }: AgentChoices) {
  const changed = changedOptions(options);
  if (cwd === null && !changed.length) return null;
  return (
    <ul className={styles.differences} aria-label="Chosen for the agent">
      {cwd !== null && (
        <li className={styles.difference} title={cwd}>
          <Icon name="folder" />
          <span className={text.ellipsis}>{lastName(cwd)}</span>
        </li>
      )}
      {changed.map((option) => (
        <li key={option.id} className={styles.difference}>
          <span className={text.ellipsis}>
            {option.name}: {describeValue(option, option.value)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The name of an option's value. */
function describeValue({ choices }: AgentOption, value: OptionValue): string {
  if (typeof value === "boolean") return value ? "on" : "off";
  return choices.find(({ id }) => id === value)?.name ?? value;
}

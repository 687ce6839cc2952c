const TITLES: Readonly<Record<string, string>> = {
  chat: "Assistant (with tools)",
  direct: "Model only",
};

/** What an agent is called on the page: a built-in one has a title, any other its name. */
export const agentTitle = (name: string): string => TITLES[name] ?? name;

/** What the built-in agents are for, by name. */
export const AGENT_DESCRIPTIONS: Readonly<Record<string, string>> = {
  chat: "Uses tools and memory",
  direct: "No tools. Used by API clients.",
};

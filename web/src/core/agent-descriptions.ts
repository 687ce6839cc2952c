/** What the built-in agents are for, by name. */
export const AGENT_DESCRIPTIONS: Readonly<Record<string, string>> = {
  chat: "The usual assistant: it can use tools and memory",
  direct: "The model alone, without Holdfast’s tools; used by API clients",
};

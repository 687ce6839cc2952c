/** The sections of the settings in their order, by what follows the # in their address. */
export const SECTION_NAMES = {
  models: "Models",
  "chat-defaults": "Chat defaults",
  personas: "Personas",
  prompts: "Prompts",
  tools: "Agents and tools",
  mcp: "MCP servers",
  memory: "Memory",
  usage: "Usage",
  appearance: "Appearance",
  notifications: "Notifications",
  access: "Password and tokens",
  sharing: "Sharing",
  data: "Data",
  about: "About",
} as const;

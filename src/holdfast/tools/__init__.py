"""The built-in tools, MCP tools, and the policy that decides whether a call needs approval."""

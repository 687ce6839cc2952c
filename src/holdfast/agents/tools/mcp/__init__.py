"""Tools of MCP servers. The SDK is imported when the first server is used: it is large, and most people have none."""

"""Tools of MCP servers. The SDK is large, so it is imported when the first server is used."""

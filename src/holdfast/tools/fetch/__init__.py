"""The fetch tool: reads pages of the public web, guarded against server-side request forgery."""

"""A session's own directory, and the tools that work in it."""

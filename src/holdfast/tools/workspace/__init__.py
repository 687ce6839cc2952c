"""A session's workspace directory, and the file tools that work in it."""

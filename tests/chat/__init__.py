"""The chat agent in real server processes, over HTTP, with a model server that plays scripts."""

"""The chat agent: a model and its tools in a loop that can resume wherever it stopped."""

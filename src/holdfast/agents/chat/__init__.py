"""The agent loop: a model and its tools, as a run that can be taken up wherever it stopped."""

"""One module per kind of call."""

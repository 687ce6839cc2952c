"""What runs change in a directory: contents are kept before each change, so that it can be shown and undone."""

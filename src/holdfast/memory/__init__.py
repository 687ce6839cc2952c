"""Memory: providers that recall before a run and commit at its boundaries."""

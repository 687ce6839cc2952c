"""Memory providers: they recall facts before a run and learn facts at its boundaries."""

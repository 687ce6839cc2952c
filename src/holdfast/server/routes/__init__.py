"""The native API: one module per subject, each with its `router`."""

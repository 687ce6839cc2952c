"""The durable run engine: `engine.Engine` puts it together, with its use cases by subject (`sessions`, `runs`, …)."""

"""Agents: adapters that turn a model, a tool loop or a process into a stream of events."""

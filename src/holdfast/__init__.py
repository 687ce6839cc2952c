"""Holdfast: AI chat and agents that never lose a token. Every turn is a durable run."""

__version__ = "0.1.0"

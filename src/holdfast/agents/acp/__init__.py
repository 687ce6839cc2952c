"""Agents that run as programs of their own and speak the Agent Client Protocol."""

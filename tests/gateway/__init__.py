"""Agents behind a gateway."""

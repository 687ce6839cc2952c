"""Hermes' gateway as an agent: its HTTP API can go on with any session of Hermes."""

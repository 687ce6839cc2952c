"""Simulated histories: the real engine on in-process storage, where hours pass at once and everything fails."""

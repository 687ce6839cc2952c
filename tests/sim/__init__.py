"""Simulated histories: the real engine on in-process storage, in virtual time and with injected faults."""

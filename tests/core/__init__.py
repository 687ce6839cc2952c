"""Plain values and tables: no I/O but the recorded journals, no clock, no async."""

"""The pure part: values, tables and functions. No I/O, no clock, no async. Read run.py first, then events.py."""

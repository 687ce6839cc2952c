"""Readers of other applications' chat history. Each turns one format into sections of our own export format, which the
import of `engine.export_import` validates and stores; none writes to its source."""

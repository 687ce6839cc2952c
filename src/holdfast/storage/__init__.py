"""Adapters of the storage ports. They share contract suites (`holdfast.testing.contracts`), not an ancestor."""

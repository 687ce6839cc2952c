"""Adapters of the storage ports. They have no common base class; shared test suites (`holdfast.testing.contracts`) keep
them alike."""

"""Fakes, faults and contract suites for whoever tests Holdfast or writes an adapter for it.

`holdfast.testing.contracts` needs pytest and is therefore not imported from here.
"""

from holdfast.testing.fakes import CountingIds, FakeClock
from holdfast.testing.faults import Fault, FaultyJournal, FaultyStore, FaultyWakeups, Plan

__all__ = [
    "CountingIds",
    "FakeClock",
    "Fault",
    "FaultyJournal",
    "FaultyStore",
    "FaultyWakeups",
    "Plan",
]

"""The limits of a session's fields: those of API requests, and of what the server stores, which an import may have. How
many turns may be queued: `engine.transactions.accept`.

`server.schemas` enforces those of requests, `engine.export_lines` and `engine.export_import` those of imports.
"""

from collections.abc import Iterable
from typing import Final

MAX_ID: Final = 200
MAX_TITLE: Final = 500
MAX_NAME: Final = 200  # Of a model, an agent or a project
MAX_TEXT: Final = 1_000_000  # Of instructions and messages in a request
MAX_TAGS: Final = 50
MAX_TAG: Final = 100
MAX_SETTINGS: Final = 64 * 1024  # Bytes as JSON
MAX_SETTING_FIELDS: Final = 50

# A stored session can have more than one field of a request allows: instructions of a program come in several messages,
# and the server adds settings of its own (memory, directory and options of an agent, origin, metadata).
MAX_STORED_NAME: Final = 500  # A model in a request below `/v1`
MAX_STORED_INSTRUCTIONS: Final = 8 * 1024 * 1024  # As long as a whole request
MAX_STORED_SETTINGS: Final = 4 * MAX_SETTINGS
MAX_STORED_SETTING_FIELDS: Final = 2 * MAX_SETTING_FIELDS
MAX_REDO: Final = 10_000
MAX_PARTS: Final = 10_000  # Of an imported message: pages show all parts of a message
MAX_SIBLINGS: Final = 10_000  # Answers to one message in an import: pages name all siblings of a message
MAX_SUMMARY: Final = 256 * 1024  # Characters of a summary of older messages in an import
MAX_SUMMARIES: Final = 4 * 1024 * 1024  # Characters of all summaries of an imported session

# What describes an answer. It is shortened where it is longer.
MAX_LABEL: Final = 1000  # Its model, why it ended
MAX_ERROR: Final = 10_000


def unique_tags(tags: Iterable[str]) -> list[str]:
    """The first of each tag; upper and lower case make no difference."""
    found: dict[str, str] = {}
    for tag in tags:
        found.setdefault(tag.casefold(), tag)
    return list(found.values())

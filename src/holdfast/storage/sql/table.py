"""The statements that select, insert and replace rows of one table."""

from collections.abc import Sequence
from functools import cached_property


class Table:
    """A table whose rows are replaced by `key`. The statements are constants, so a database prepares each once."""

    def __init__(self, name: str, columns: str, key: str = "id") -> None:
        self.name = name
        self.columns = columns
        self.names = tuple(columns.split(", "))
        self.key = key
        self.select = f"SELECT {columns} FROM {name}"
        self.select_by_id = f"{self.select} WHERE id = ?"
        self.placeholders = ", ".join(["?"] * len(self.names))
        self._assignments = tuple(f"{each} = ?" for each in self.names)

    @cached_property
    def upsert(self) -> str:
        """Not REPLACE, which deletes the row and everything that refers to it."""
        key = self.key.split(", ")
        replaced = ", ".join(f"{each} = excluded.{each}" for each in self.names if each not in key)
        insert = f"INSERT INTO {self.name} ({self.columns}) VALUES ({self.placeholders})"
        return f"{insert} ON CONFLICT ({self.key}) DO UPDATE SET {replaced}"

    def update(self, changed: Sequence[int]) -> str:
        """An UPDATE of the columns at these positions by id."""
        return f"UPDATE {self.name} SET {', '.join([self._assignments[n] for n in changed])} WHERE id = ?"

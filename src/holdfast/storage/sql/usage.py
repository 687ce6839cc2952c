"""SQL for sums over what runs used. They are computed from the runs themselves; of erased runs, `erased_usage` has what
is needed, added up by quarters of an hour. How sums become a cost: `core.costs`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.core.usage import QUARTER, UsageSum
from holdfast.ports.store import UsageGrouping, UsageQuery
from holdfast.storage.sql.dialect import Dialect
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import ERASED_USAGE

_MODEL: Final = "coalesce(model, 'agent:' || agent)"
_KEPT_MODEL: Final = f"substr({_MODEL}, 1, 400)"
"""As part of a key: with a project, the longest name that a client can give would be too long for PostgreSQL."""
_PROJECT: Final = "coalesce((SELECT project FROM sessions WHERE sessions.id = runs.session_id), '')"
_NUMBERS: Final = ("input_tokens", "output_tokens", "cost", "cached_tokens", "reasoning_tokens")
"""In the order in which the column `usage` has them."""


def _used(db: Dialect) -> str:
    """What one run used."""
    numbers = ", ".join(f"{db.usage_number(n)} AS {name}" for n, name in enumerate(_NUMBERS))
    return f"{numbers}, ended_at - coalesce(started_at, ended_at) AS seconds"


def _total(db: Dialect, number: str) -> str:
    return db.whole(f"coalesce(sum({number}), 0)")


def keep_usage(db: Dialect, condition: str, value: str) -> None:
    """Adds what runs used to `erased_usage` before their rows are erased. In the order of the key, so that two nodes
    that do this at once wait for each other in the same order."""
    quarter = f"{db.whole(f'ended_at / {QUARTER}')} * {QUARTER}"
    totals = ", ".join("sum(cost)" if name == "cost" else _total(db, name) for name in _NUMBERS)
    key = ERASED_USAGE.key
    added = ("runs", *_NUMBERS, "seconds")
    sums = ", ".join(f"{name} = erased_usage.{name} + excluded.{name}" for name in added)
    sql = f"""
        INSERT INTO erased_usage ({key}, {", ".join(added)})
        SELECT {key}, count(*), {totals}, sum(seconds) FROM (
            SELECT {quarter} AS ended_at, owner, {_KEPT_MODEL} AS model, {_PROJECT} AS project,
                {db.usage_number(_NUMBERS.index("cost"))} IS NOT NULL AS billed, {_used(db)}
            FROM {db.used_runs} WHERE {condition} AND usage IS NOT NULL AND ended_at IS NOT NULL
        ) AS used GROUP BY {key} ORDER BY {key}
        ON CONFLICT ({key}) DO UPDATE SET {sums}
    """
    db.execute(sql, value)


class SqlUsageRows(Statements):
    def usage(self, query: UsageQuery) -> Sequence[UsageSum]:
        day = self._db.whole("(ended_at + ?) / 86400")
        of_run: Mapping[UsageGrouping, str] = {"day": day, "model": _MODEL, "project": _PROJECT}
        of_erased: Mapping[UsageGrouping, str] = {"day": day, "model": "model", "project": "project"}
        where = "owner = ? AND ended_at >= ? AND ended_at < ?"
        unbilled = "CASE WHEN cost IS NULL THEN {} ELSE 0 END".format
        counts = ("runs", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
        totals = ", ".join(_total(self._db, name) for name in counts)
        missing = ", ".join(
            _total(self._db, unbilled(name)) for name in ("input_tokens", "cached_tokens", "output_tokens")
        )
        runs = f"""
            SELECT {of_run[query.by]} AS key, {_MODEL} AS model, 1 AS runs, {_used(self._db)}
            FROM {self._db.used_runs} WHERE usage IS NOT NULL AND """
        erased = f"""
            UNION ALL SELECT {of_erased[query.by]}, model, runs, {", ".join(_NUMBERS)}, seconds
            FROM erased_usage WHERE {where}
        """
        shift = [query.utc_offset] if query.by == "day" else []
        if query.session_id is None:
            values: list[Any] = [*shift, query.owner, query.since, query.until]
            found, values = runs + where + erased, [*values, *values]
        else:  # without conditions for which all runs of the owner would be read
            found, values = f"{runs}session_id = ? AND ended_at IS NOT NULL", [*shift, query.session_id]
        sql = f"""
            SELECT key, model, {totals}, coalesce(sum(cost), 0), {missing}, sum(seconds)
            FROM ({found}) AS used GROUP BY key, model
        """
        return [UsageSum(*row) for row in self._db.fetchall(sql, *values)]

    def trim_erased_usage(self, ended_before: float) -> None:
        self._db.execute("DELETE FROM erased_usage WHERE ended_at < ?", ended_before)

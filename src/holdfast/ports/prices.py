"""The price port: what models cost, as far as a table that others maintain knows."""

from typing import Protocol

from holdfast.core.costs import FindPrice


class PricesNotLoadedError(Exception):
    """The price of a model was asked for before the table was loaded. `load`, then do it again."""


class PriceTable(Protocol):
    def snapshot(self) -> FindPrice:
        """Finds the price of a model by its id, as things are now; None if it is unknown. It can be used on any thread,
        and does not change. Raises PricesNotLoadedError when it is used, if the table has never been loaded."""

    async def load(self) -> FindPrice:
        """`snapshot`, once the table is loaded. That is slow the first time, so only those who need it do it."""

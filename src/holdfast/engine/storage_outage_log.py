"""Logs an outage of storage as two lines for each activity that it stops: when it begins to fail, and when it works
again. Other errors are bugs and are logged with their traceback each time. What happens to runs meanwhile:
`engine.group_commit`."""

import logging
from collections.abc import Awaitable, Callable, Iterable

from holdfast.core.errors import StorageError

log = logging.getLogger("holdfast.engine")


class OutageLog:
    def __init__(self) -> None:
        self._failing: set[str] = set()

    def failed(self, activity: str, error: Exception) -> None:
        if not isinstance(error, StorageError | TimeoutError):
            log.warning("%s failed; the server tries again", activity, exc_info=error)
        elif activity not in self._failing:
            self._failing.add(activity)
            log.warning(
                "%s fails and is repeated until storage answers: %s",
                activity,
                str(error) or "storage did not answer in time",
            )

    async def try_each(self, activity: str, steps: Iterable[Callable[[], Awaitable[object]]]) -> None:
        """Take every step, even if another fails. The activity works again when all of them do."""
        outage: Exception | None = None
        for step in steps:
            try:
                await step()
            except (StorageError, TimeoutError) as error:
                outage = outage or error
            except Exception as error:  # noqa: BLE001 - one step that fails holds up no other
                self.failed(activity, error)
        if outage is not None:
            self.failed(activity, outage)
        else:
            self.worked(activity)

    def worked(self, activity: str) -> None:
        if activity in self._failing:
            self._failing.remove(activity)
            log.warning("%s works again", activity)

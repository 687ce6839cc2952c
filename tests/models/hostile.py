"""What upstreams do to a client, as a table: each case is a script of the upstream and what has to come of it.

Used at the level of the model port here, and by the tests of whole runs: `text`, `code` and `says` are then the
message's text, the failure's code and words of its notice.
"""

from tests.models.hostile_bodies import BODIES
from tests.models.hostile_breaks import BREAKS
from tests.models.hostile_calls import CALLS
from tests.models.hostile_case import Call, Case
from tests.models.hostile_statuses import STATUSES

__all__ = ["CASES", "Call", "Case"]

CASES: tuple[Case, ...] = (*BODIES, *CALLS, *STATUSES, *BREAKS)

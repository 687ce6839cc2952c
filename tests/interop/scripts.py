"""Answers of the scripted upstream that several programs get."""

from typing import Any, Final

from tests.openai.scripts import calls_function
from tests.upstream import Hang, Head, Script, answers, delta, says, sse

HALF: Final[Script] = [Head(), *sse(delta(content="One ")), Hang()]
"""An answer that never ends."""
WEATHER: Final[tuple[Script, ...]] = (calls_function('{"ci', 'ty":"Brest"}'), says("Rain."), says("Sure."))
"""Calls `get_weather`, then answers twice."""
TIDE_FIELDS: Final[dict[str, Any]] = {"place": "Brest", "hours": [6, 18]}


def refuses(status: int) -> Script:
    """A provider that fails."""
    return answers(status, {"error": {"message": "The provider says no."}})

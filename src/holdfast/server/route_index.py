"""Finds the route of a path without trying all of them: the app has more than a hundred."""

from collections.abc import Iterable, Sequence
from typing import Final

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

_ROUTE: Final = "holdfast.route"
"""Key in the ASGI scope of the route that was found."""
_Key = tuple[int, str, str | None]  # The number of segments, the first two, and the last one unless it is a parameter


class RouteIndex(BaseRoute):
    """Routes whose first two segments are literal, tried in the order in which they were given."""

    def __init__(self, routes: Iterable[Route]) -> None:
        keyed = [(_key(route.path), route) for route in routes]
        self._routes: dict[_Key, list[Route]] = {}
        for count, prefix, last in {key for key, _ in keyed}:
            fitting = (count, prefix, last), (count, prefix, None)
            self._routes[count, prefix, last] = [route for key, route in keyed if key in fitting]

    @staticmethod
    def can_hold(route: Route) -> bool:
        segments = route.path.split("/")
        return len(segments) >= 3 and "{" not in "".join(segments[:3]) and ":path}" not in route.path

    def _candidates(self, path: str) -> Sequence[Route]:
        count, prefix, last = _key(path)
        found = self._routes.get((count, prefix, last))
        return self._routes.get((count, prefix, None), ()) if found is None else found

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found: tuple[Match, Scope] = Match.NONE, {}
        for route in self._candidates(scope["path"]):
            match, child_scope = route.matches(scope)
            if match.value > found[0].value:
                found = match, {**child_scope, _ROUTE: route}
            if match is Match.FULL:
                break
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route = scope.pop(_ROUTE)
        await route.handle(scope, receive, send)


def _key(path: str) -> _Key:
    segments = path.split("/")
    return len(segments), "/".join(segments[:3]), None if segments[-1].startswith("{") else segments[-1]

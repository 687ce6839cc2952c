"""The index finds the same routes as trying all of them."""

from collections import defaultdict
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route

from holdfast.server.app import native_endpoints
from holdfast.server.openai import routes as openai_routes
from holdfast.server.route_index import RouteIndex


async def respond(request: Request) -> Response:
    return PlainTextResponse("")


def routes() -> list[Route]:
    endpoints = [*native_endpoints(), *openai_routes.router.endpoints]
    return [Route(each.path, respond, methods=[each.method], name=each.handler.__name__) for each in endpoints]


def linear(found: list[Route], scope: dict[str, str]) -> tuple[Match, str]:
    """What Starlette's router does: the first that matches in full, otherwise the first of which only the method
    differs."""
    matches = [(route.matches(scope)[0], route.path) for route in found]
    full = [match for match in matches if match[0] is Match.FULL]
    partial = [match for match in matches if match[0] is Match.PARTIAL]
    return (full or partial or [(Match.NONE, "")])[0]


def variants(path: str, names: dict[int, set[str]]) -> Iterator[str]:
    """The path with each name that another route has in the same place, and with more segments."""
    segments = path.split("/")
    for more in ([], ["x"], [""]):
        for other in {name for at, segment in enumerate(segments) if "{" in segment for name in names[at]} | {"x", ""}:
            yield "/".join([*(other if "{" in segment else segment for segment in segments), *more])


def test_the_index_finds_what_trying_all_routes_finds() -> None:
    """For every method, and for every path with parameters filled in, with more or fewer segments, and with names of
    other routes as parameters."""
    found = [route for route in routes() if RouteIndex.can_hold(route)]
    index = RouteIndex(found)
    names: defaultdict[int, set[str]] = defaultdict(set)
    for route in found:
        for at, segment in enumerate(route.path.split("/")):
            names[at].add(segment)
    paths = {path for route in found for path in variants(route.path, names)}
    assert len(paths) > 1000
    for path in paths:
        candidates = [route for route in found if route.path_regex.match(path)]  # the others match with no method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
            scope = {"type": "http", "method": method, "path": path}
            match, child = index.matches(scope)
            expected, expected_path = linear(candidates, scope)
            assert match is expected, (method, path)
            if match is not Match.NONE:
                assert child["holdfast.route"].path == expected_path, (method, path)


def test_most_routes_are_in_the_index() -> None:
    """Those with a parameter of many segments stay outside, where all are tried."""
    outside = [route.path for route in routes() if not RouteIndex.can_hold(route)]
    assert "/v1/models/{model:path}" in outside
    assert len(outside) < 8

"""Every call that takes a body, as the API's own description lists them: what no call may take, none takes."""

import json
import re
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.streams import GUARD

HOSTILE = {
    "infinity": ('{{"{name}": 1e999}}', (400, 422)),
    "NaN": ('{{"{name}": NaN}}', (400, 422)),
    "surrogate": ('{{"{name}": "\\ud800"}}', (400, 422)),
    "surrogate as a name": ('{{"\\udfff": 1}}', (400, 422)),
    "long number": ('{{"{name}": %s}}' % ("9" * 100_000), (400, 413, 422)),
    "nested lists": ('{{"{name}": %s}}' % ("[" * 100_000), (400, 413, 422)),
    "nested objects": ('{{"{name}": %s}}' % ('{{"a":' * 50_000), (400, 413, 422)),
    "many values": ('{{"{name}": [%s0]}}' % ("0," * 2_000_000), (400, 413, 422)),
    "no object": ("[1]", (400, 422)),
    "cut off": ('{{"{name}"', (400, 422)),
    "no UTF-8": ("\x00\ud800", (400, 422)),
}


Calls = list[tuple[str, str, str]]
"""Method, path and the name of a field of the body."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, http_forker: ServerForker) -> Iterator[Served]:
    """A server of their own, whose settings may change."""
    with Served(http_forker, tmp_path_factory.mktemp("bodies") / "data") as served:
        yield served.ready()


@pytest.fixture(scope="module")
def calls(target: Served) -> Calls:
    document = target.get("/openapi.json")
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                name = schema.get("$ref", "").rpartition("/")[2]
                fields = document["components"]["schemas"].get(name, schema).get("properties", {})
                found.append((method.upper(), re.sub(r"{\w+}", "none", path), next(iter(fields), "x")))
    assert len(found) > 50
    return found


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_json_cannot_carry_reaches_no_call(target: Served, calls: Calls, kind: str) -> None:
    """Each answers with an error of the client's, quickly, and the server is as it was."""
    text, statuses = HOSTILE[kind]
    for method, path, field in calls:
        body = text.format(name=field).encode("utf-8", "surrogatepass")
        answer = target.http.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in statuses, (method, path, answer.status_code, answer.text[:200])
    assert target.http.get("/api/sessions").status_code == 200


def test_a_body_that_says_it_is_endless_is_refused_by_every_call(target: Served, calls: Calls) -> None:
    """Before it is sent: nobody keeps memory for it, or waits for its end."""
    for method, path, _ in calls:
        with socket.create_connection(target.address, GUARD) as line:
            line.sendall(
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {10**12}\r\n\r\n{{".encode()
            )
            assert line.recv(100).split(b" ")[1] == b"413", (method, path)


def _values() -> st.SearchStrategy[object]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    )


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_of_any_field_is_taken_or_refused(target: Served, calls: Calls, data: st.DataObject) -> None:
    """Nothing that a client sends is a bug of the server."""
    method, path, field = data.draw(st.sampled_from([call for call in calls if call[1] != "/api/password"]))
    body = json.dumps({field: data.draw(_values())})
    answer = target.http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code < 500 or answer.status_code in (503, 507), (method, path, body, answer.text[:200])

"""Reads what the HTTP API says about a data directory, for comparing two versions of Holdfast.

Only what comes from the data is kept, not texts that a version composes by itself. Times after `written_at` become
"later": recovery and queued turns happen when the directory is opened.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from tests.http.client import OPEN, Served
from tests.http.streams import until

_COMPOSED: Final = ("description", "failure")
"""Fields of tools and MCP servers whose text belongs to the running version."""


UNREMEMBERED: Final = "Not yet remembered"
"""Title of the session with a turn that the next start commits to memory."""


def session(served: Served, title: str) -> Any:
    (found,) = [item for item in served.get("/api/sessions?limit=200")["items"] if item["title"] == title]
    return found


def settle(served: Served) -> None:
    """Wait until recovery, the queue and memory have done their work; runs that wait for a person stay."""
    until(lambda: served.get("/api/runs", params={"limit": 200})["items"], _is_quiet)
    path = f"/api/sessions/{session(served, UNREMEMBERED)['id']}/memory"
    until(lambda: served.get(path), lambda memory: memory["dirty_turns"] == 0)


def _is_quiet(runs: list[Any]) -> bool:
    return not any(run["status"] in OPEN and run["status"] != "waiting" for run in runs)


def read_all(served: Served, written_at: float) -> dict[str, Any]:
    """Every answer by its path; `written_at` is a Unix time."""
    border = datetime.fromtimestamp(written_at, UTC)
    found = {path: _without_later_times(answer, border) for path, answer in _read(served)}
    return mark_later_durations(found)


def mark_later_durations(answers: dict[str, Any]) -> dict[str, Any]:
    """How long a run took that ended when the directory was opened depends on when that was."""
    later = {run["id"] for run in answers["/api/runs"] if run["ended_at"] == "later"}
    for path, answer in answers.items():
        for message in answer["items"] if path.endswith("/messages") else ():
            if message["run_id"] in later:
                message["duration_ms"] = "later"
    return answers


def _read(served: Served) -> Iterator[tuple[str, Any]]:
    settings = served.get("/api/settings")
    yield "/api/settings", {name: settings[name] for name in ("default_model", "tools", "grants")}
    for path in ("/api/tokens", "/api/memory"):
        yield path, served.get(path)
    for path in ("/api/tools", "/api/mcp"):
        items = served.get(path)["items"]
        yield path, {item["name"]: {k: v for k, v in item.items() if k not in _COMPOSED} for item in items}
    for query in ("?limit=200", "?limit=200&archived=true", "?project=Harbor", "?query=tide", "?query=lisbon"):
        yield f"/api/sessions{query}", _by_id(served.get(f"/api/sessions{query}")["items"])
    runs = _by_id(served.get("/api/runs?limit=200")["items"])
    yield "/api/runs", runs
    for run in runs:
        yield f"/api/runs/{run['id']}", served.run(run["id"])
        frames = _all_frames(served, run)
        yield f"/api/runs/{run['id']}/events", [[frame.id, frame.event, frame.data] for frame in frames]
    sessions = [*served.get("/api/sessions?limit=200")["items"], *served.get("/api/sessions?archived=true")["items"]]
    for session in _by_id(sessions):
        path = f"/api/sessions/{session['id']}"
        for below in ("", "/messages", "/usage", "/memory"):
            yield path + below, served.get(path + below)
        export = served.http.get(f"{path}/export").text
        yield f"{path}/export", [json.loads(line) for line in export.splitlines()]
        for message in served.messages(session["id"]):
            for part in message["parts"]:
                if part["type"] == "file":
                    file = f"/api/files/{part['file_id']}"
                    yield file, served.get(file)
                    yield f"{file}/content", served.http.get(f"{file}/content").content.hex()
    for run in runs:
        response = served.get(f"/v1/responses/{run['id'].replace('run_', 'resp_')}")
        if response["error"] is not None:
            response["error"].pop("message")
        yield f"/v1/responses/{run['id']}", response


def _all_frames(served: Served, run: Any) -> list[Any]:
    """To the end of the run, or to its question if it waits for a person."""
    with served.watch(run["id"]) as stream:
        if run["status"] == "waiting":
            stream.until("approval.requested")
            return stream.frames
        return stream.rest()


def _by_id(items: list[Any]) -> list[Any]:
    return sorted(items, key=lambda item: str(item["id"]))


def _without_later_times(value: Any, border: datetime) -> Any:
    match value:
        case dict():
            return {
                name: "later"
                if name == "at" and isinstance(item, int) and item / 1000 > border.timestamp()
                else _without_later_times(item, border)
                for name, item in value.items()
            }
        case list():
            return [_without_later_times(item, border) for item in value]
        case str() if value[:2] == "20" and value.endswith("Z") and datetime.fromisoformat(value) > border:
            return "later"
        case _:
            return value


def missing(recorded: Any, answer: Any, place: str = "") -> Iterator[str]:
    """Where `answer` lacks or contradicts something of `recorded`; new fields are no difference."""
    if isinstance(recorded, dict) and isinstance(answer, dict):
        for name, value in recorded.items():
            yield from missing(value, answer.get(name), f"{place} {name}")
    elif isinstance(recorded, list) and isinstance(answer, list) and len(recorded) == len(answer):
        for n, (one, other) in enumerate(zip(recorded, answer, strict=True)):
            yield from missing(one, other, f"{place}[{n}]")
    elif recorded != answer:
        yield f"{place}: {recorded!r} was recorded, {answer!r} came"

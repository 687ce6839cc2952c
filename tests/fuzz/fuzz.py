"""Every call of the API's own description, with requests made from it: valid ones and broken ones, on ids that exist
and on ids that do not. Nothing may be a 500, nothing may hang, and every answer must be as described."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis.errors import InvalidArgument, Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.errors import InvalidSchema

from holdfast.server.authenticator import set_password
from holdfast.storage.key_file import KeyFile
from tests.http.client import Served


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """A sequence of JSON values, a line each; anything else as one line."""
    items = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(item, default=repr).encode() + b"\n" for item in items)


HANG: Final = 20.0
"""Seconds in which an answer must begin."""


_SPENDING: Final = ("/password", "/clear", "/approvals/{aid}", "/import", "/cancel")
"""Calls after which the ids of the pool may no longer be of use, beside those that delete."""
_UNMADE: Final = (InvalidArgument, Unsatisfiable, InvalidSchema)
"""What the generator says if there is nothing to break in a call, or no way that it knows."""


@dataclass
class Report:
    examples: int = 0
    statuses: "Counter[str]" = field(default_factory=Counter)
    by_call: "Counter[str]" = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    unmade: list[str] = field(default_factory=list)
    """Calls of which the generator could make no request of a kind, or stopped making them."""


@dataclass
class Pool:
    """Ids that exist, so that not every request ends at the first look-up."""

    server: Served
    projects: int = 0
    ids: dict[str, "itertools.cycle[str]"] = field(default_factory=dict)

    def fill(self) -> None:
        server = self.server
        sessions = [server.session(title=f"fuzz {n}") for n in range(4)]
        runs, messages, approvals = [], [], ["apr_none"]
        for n, sid in enumerate(sessions):
            script: list[dict[str, Any]] = [{"say": "hello "}, {"think": "hm"}, {"call": f"c{n}"}]
            taken = server.send(sid, [*script, {"call": f"q{n}", "asks": True}] if n == 3 else script)
            with server.watch(taken["run"]["id"]) as stream:
                last = stream.until("approval.requested" if n == 3 else "run.complete")
                approvals += [last.data["approval_id"]] if n == 3 else []
            runs.append(taken["run"]["id"])
            messages += [taken["message"]["id"], taken["run"]["message_id"]]
        runs.append(server.begin(server.session(), [{"say": "active "}, {"hang": True}]))  # text can be added to it
        files = server.http.post("/api/files", files={"file": ("a.txt", b"words", "text/plain")}).json()["id"]
        self.projects += 1
        values = {"name": f"fuzz {self.projects}", "instructions": "Be brief."}
        project = server.post("/api/projects", values, 201)["id"]
        shares = [server.post(f"/api/sessions/{sid}/shares", {}, 201)["id"] for sid in sessions[:2]]
        server.set_budgets({"period": "day", "limit": 1e9, "unit": "tokens", "action": "warn"})
        (budget,) = server.get("/api/budgets")["items"]
        for sid in sessions:
            directory = server.data_dir / "workspaces" / sid / "notes"
            directory.mkdir(parents=True)
            (directory / "tides.txt").write_text("High at six.")
        self.ids = {
            "sid": itertools.cycle([*sessions, "ses_none"]),
            "rid": itertools.cycle([*runs, "run_none"]),
            "run_id": itertools.cycle([*runs, "run_none"]),
            "fid": itertools.cycle([files, "file_none"]),
            "file_id": itertools.cycle([files, "file_none"]),
            "pid": itertools.cycle([project, "prj_none"]),
            "share_id": itertools.cycle([*shares, "shr_none"]),
            "bid": itertools.cycle([budget["id"], "none"]),
            "path": itertools.cycle(["notes", "notes/tides.txt", "notes/new.txt", "../notes", ""]),
            "to": itertools.cycle(["notes/moved.txt", "notes", "other"]),
            "project": itertools.cycle([f"fuzz {self.projects}", project]),
            "aid": itertools.cycle(approvals),
            "tid": itertools.cycle(["tok_none"]),
            "message_id": itertools.cycle([*messages, "msg_none"]),
            "session_id": itertools.cycle(sessions),
            "response_id": itertools.cycle([f"resp_{rid.removeprefix('run_')}" for rid in [*runs, "run_none"]]),
            "previous_response_id": itertools.cycle([f"resp_{runs[0].removeprefix('run_')}", "resp_none"]),
            "conversation_id": itertools.cycle([f"conv_{sessions[1].removeprefix('ses_')}", "conv_none"]),
            "conversation": itertools.cycle([f"conv_{sessions[2].removeprefix('ses_')}"]),
            "model": itertools.cycle(["agent:chat", "agent:none"]),
        }

    def put(self, fields: Any) -> None:
        """Half of the time a real id takes the place of an invented one."""
        if isinstance(fields, dict):
            for name in fields.keys() & self.ids.keys():
                if isinstance(fields[name], str) and len(fields[name]) % 2:
                    fields[name] = next(self.ids[name])


def fuzz(server: Served, examples: int, seed: int, told: Callable[[str, int], None]) -> Report:
    """`examples` per call, half of them broken on purpose."""
    schemathesis.serializer.alias("application/x-ndjson", "application/octet-stream")  # lines that are none, mostly
    schema = schemathesis.openapi.from_dict(server.get("/openapi.json"))
    report, pool, spent = Report(), Pool(server), True
    with requests.Session() as session:
        for operation in _operations(schema):
            if spent:
                set_password(KeyFile(server.data_dir), None)
                pool.fill()
            spent = operation.method.lower() == "delete" or operation.path.endswith(_SPENDING)
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    _fuzz_one(operation, mode, server, session, pool, (examples + 1) // 2, seed, report)
                except Exception as error:  # noqa: BLE001 - whatever a check says is a finding
                    told_by = f"{operation.label} ({mode.value}): {type(error).__name__}: {error}"
                    if mode is GenerationMode.NEGATIVE and isinstance(error, _UNMADE):
                        report.unmade.append(told_by[:120])
                    else:
                        report.failures.append(told_by)
            told(operation.label, report.examples)
    return report


def _operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


def _fuzz_one(
    operation: Any,
    mode: GenerationMode,
    server: Served,
    session: requests.Session,
    pool: Pool,
    examples: int,
    seed: int,
    report: Report,
) -> None:
    @hypothesis_seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        pool.put(case.path_parameters)
        pool.put(case.query)
        pool.put(case.body)
        if operation.path == "/api/password":
            set_password(KeyFile(server.data_dir), None)  # guessing the one that was set would be slowed down
        report.examples += 1
        report.by_call[operation.label] += 1
        _try(case, server, session, report)

    one()


def _try(case: Any, server: Served, session: requests.Session, report: Report) -> None:
    asked = case.as_transport_kwargs(base_url=server.url)
    asked["cookies"] = {}
    try:
        prepared = session.prepare_request(requests.Request(**asked))
    except (requests.exceptions.InvalidHeader, UnicodeError, ValueError):
        return  # it cannot even be sent
    with session.send(prepared, timeout=HANG, stream=True, allow_redirects=False) as answer:
        report.statuses[str(answer.status_code)] += 1
        kind = answer.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            assert answer.status_code == 200
            next(answer.iter_content(16))
            return
        _ = answer.content
        assert answer.status_code < 500 or answer.status_code in (503, 507), _story(case, answer)
        if answer.status_code == 431:  # below the application, as plain text
            assert len(prepared.path_url) > 50_000, _story(case, answer)
        elif answer.status_code >= 400 and prepared.path_url.startswith("/v1/"):
            assert kind == "application/json", _story(case, answer)
            assert answer.json()["error"]["message"], _story(case, answer)
        elif answer.status_code >= 400:
            assert kind == "application/problem+json", _story(case, answer)
            problem = answer.json()
            assert problem["status"] == answer.status_code, _story(case, answer)
            assert problem["detail"], _story(case, answer)
        elif answer.status_code != 204 and kind.startswith("application/json"):
            case.validate_response(answer, checks=[not_a_server_error, *_described()])


def _described() -> list[Any]:
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    return [response_schema_conformance, status_code_conformance]


def _story(case: Any, answer: requests.Response) -> str:
    return f"{answer.status_code} {answer.text[:300]!r} for {case.as_curl_command()[:2000]}"

"""The start of a server imports only what it needs to answer."""

import json
import subprocess
import sys
from pathlib import Path

import anyio

from holdfast.app import deferred_imports
from tests.cli.terminal import GUARD
from tests.fork_server import ROOT

NOT_YET = {"aiohttp", "jsonschema", "mcp", "numpy", "prometheus_client", "pydantic_ai", "regex", "rich", "xllamacpp"}
"""Each takes tens to hundreds of milliseconds to import."""
NEVER = {"holdfast.agents.scripted_agent", "holdfast.cli.chat", "psycopg", "redis"}
"""Tests', of other commands, of several nodes."""

_SERVE = """
import json, os, sys
from holdfast import __main__ as command
from holdfast.cli.terminal import Terminal

def listens(self, text):
    schemas = sys.modules["holdfast.server.schemas.sessions"]
    built = schemas.SessionResponse.__pydantic_complete__ or schemas.CreateSessionRequest.__pydantic_complete__
    os.write(1, json.dumps([list(sys.modules), built]).encode())
    os._exit(0)

Terminal.raw = listens
sys.argv = ["holdfast", "serve", "--port", "0", "--data-dir", sys.argv[1]]
command.main()
"""


def test_a_server_listens_before_it_imports_what_it_does_not_need_for_that(tmp_path: Path) -> None:
    """If this fails, an import was moved to the top of a file: `app/deferred_imports.py` says why it was not there."""
    command = [sys.executable, "-c", _SERVE, str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=GUARD, check=True)
    imported, schemas_are_built = json.loads(done.stdout)
    assert {"starlette", "holdfast.app.agents"} <= set(imported)
    assert (NOT_YET | NEVER) & set(imported) == set()
    assert not schemas_are_built, "server/schemas/base.py defers building validators to the first use"


def test_what_was_put_off_is_there_before_somebody_needs_it() -> None:
    """Deferred modules are imported in the background, so that the first answer need not wait for them."""
    anyio.run(deferred_imports.warm_up, 0.0)
    assert {*deferred_imports.LATER, "aiohttp", "numpy"} <= set(sys.modules)

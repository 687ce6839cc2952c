"""What a start waits for: only what a server needs to answer."""

import json
import subprocess
import sys
from pathlib import Path

import anyio

from holdfast.wiring import warming
from tests.cli.terminal import GUARD
from tests.nursery import ROOT

NOT_YET = {"aiohttp", "jsonschema", "mcp", "numpy", "prometheus_client", "pydantic_ai", "regex", "rich", "xllamacpp"}
"""Each takes tens to hundreds of milliseconds to import."""
NEVER = {"holdfast.agents.scripted", "holdfast.faces.cli.chat", "psycopg", "redis"}
"""Tests', of other commands, of several nodes."""

_SERVE = """
import json, os, sys
from holdfast import __main__ as command
from holdfast.faces.cli.screen import Screen

def listens(self, text):
    checks = sys.modules["fastapi.openapi.models"].OpenAPI.__pydantic_complete__
    os.write(1, json.dumps([list(sys.modules), checks]).encode())
    os._exit(0)

Screen.raw = listens
sys.argv = ["holdfast", "serve", "--port", "0", "--data-dir", sys.argv[1]]
command.main()
"""


def test_a_server_listens_before_it_imports_what_it_does_not_need_for_that(tmp_path: Path) -> None:
    """If this fails, an import was moved to the top of a file: `wiring/warming.py` says why it was not there."""
    command = [sys.executable, "-c", _SERVE, str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=GUARD, check=True)
    imported, checks_are_made = json.loads(done.stdout)
    assert {"fastapi", "holdfast.wiring.crew"} <= set(imported)
    assert (NOT_YET | NEVER) & set(imported) == set()
    assert not checks_are_made, "of FastAPI's own models: faces/http/__init__.py puts that off"


def test_what_was_put_off_is_there_before_somebody_needs_it() -> None:
    """A little later it is imported in the background, so that the first answer of a model need not wait for it."""
    anyio.run(warming.warm_up, 0.0)
    assert {*warming.LATER, "aiohttp", "jsonschema", "numpy"} <= set(sys.modules)

"""What an approved shell command can do to the server that runs it."""

import sys
from pathlib import Path

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import decide, results
from tests.http.conftest import Start
from tests.upstream import says

ASK = """
import urllib.request, urllib.error, sys
body, headers = b'{"tools": {"shell": "allow"}}', {"Content-Type": "application/json"}
request = urllib.request.Request(sys.argv[1], body, headers, method="PATCH")
try:
    print("status", urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as error:
    print("status", error.code)
except OSError as error:
    print("unreachable", error)
"""


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_command_cannot_use_the_api_of_an_open_server(start: Start, up: ScriptedModelServer, sandbox: str) -> None:
    """X5: without a password the server answers the person at the machine, but not its own commands."""
    server = start(more={"shell": {"sandbox": sandbox}})
    model = f"command-{sandbox}"
    url = f"{server.url}/api/settings"
    python = Path(sys.base_prefix, "bin", "python3")  # not that of the environment, which may be below /tmp
    command = {"command": f"cat > ask.py <<'EOF'\n{ASK}\nEOF\n{python} ask.py {url}"}
    up.play(model, calls(("c1", "shell", command)), says("Done."))
    sid = server.session()
    rid = server.begin(sid, "Go", model=f"{PROVIDER}/{model}")
    decide(server, rid, "once")
    assert server.ended(rid)["status"] == "complete"
    output = results(up.asked(model, 2))["c1"]
    assert "status 403" in output or "unreachable" in output, output
    assert server.get("/api/settings")["tools"] == {}

"""The request in the guide about agents, sent as it is shown there."""

import json
import re
from pathlib import Path
from typing import Final

from tests.acp.conftest import Program
from tests.fork_server import ServerForker
from tests.http.client import Served

GUIDE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "agents.md"


def test_the_request_of_the_guide_is_answered(tmp_path: Path, chat_forker: ServerForker, program: Program) -> None:
    """`agent:hermes` on `/v1` answers, here with a scripted program in Hermes' place."""
    shown = re.search(r"\$ curl http://127\.0\.0\.1:8484(\S+) .*?-d \\\s+'(.*?)'\n```", GUIDE.read_text(), re.DOTALL)
    assert shown is not None
    with Served(chat_forker, tmp_path / "data", agents={"hermes": program.section()}) as served:
        answer = served.ready().post(shown[1], json.loads(shown[2]))
    assert answer["choices"][0]["message"]["content"] == "Continued."
    assert "Which files are here?" in program.prompts[0]["text"]

"""LiteLLM as a proxy in front of Holdfast."""

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI, RateLimitError

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.streams import GUARD
from tests.interop.environments import environ, program
from tests.interop.scripts import HALF, refuses
from tests.openai.scripts import named
from tests.servers import free_port
from tests.upstream import says

pytestmark = pytest.mark.interop
KEY = f"sk-{secrets.token_hex(16)}"
MODELS = ("proxied", "proxied fails", "proxied leaves")
CONFIG = """
model_list:
{models}
general_settings:
  master_key: "{key}"
litellm_settings:
  num_retries: 0
"""
MODEL = """  - model_name: "{name}"
    litellm_params: {{model: "openai/{id}", api_base: "{url}/v1", api_key: none}}
"""


@pytest.fixture(scope="module")
def proxy(shared: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    """A client of the proxy."""
    place, port = Path(tmp_path_factory.mktemp("litellm")), free_port()
    models = "".join(MODEL.format(name=name, id=named(name), url=shared.url) for name in MODELS)
    (place / "config.yaml").write_text(CONFIG.format(models=models, key=KEY))
    command = [program("litellm", "litellm"), "--config", str(place / "config.yaml")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=place, env=environ(HOME=str(place)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        printed: list[str] = []
        for line in process.stderr:
            printed.append(line)
            if "Uvicorn running" in line:
                break
        else:
            pytest.fail(f"The proxy did not start: {''.join(printed[-5:])}", pytrace=False)
        with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0, timeout=GUARD) as client:
            yield client
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(240)
def test_streams_errors_and_cancel(proxy: OpenAI, up: ScriptedModelServer) -> None:
    """A stream passes through both servers, an error keeps its status, and leaving a stream reaches the provider."""
    user: Any = [{"role": "user", "content": "Hello"}]
    up.play("proxied", says("Good ", "morning."))
    chunks = proxy.chat.completions.create(model="proxied", messages=user, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Good morning."
    up.play("proxied fails", refuses(429))
    with pytest.raises(RateLimitError):
        proxy.chat.completions.create(model="proxied fails", messages=user)
    up.play("proxied leaves", HALF)
    with proxy.chat.completions.create(model="proxied leaves", messages=user, stream=True) as stream:
        next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)
    up.closed("proxied leaves")

"""Addresses of model servers as people and other programs write them."""

import pytest
from yarl import URL

from holdfast.models.provider_config import base_url, from_environment
from holdfast.models.server_address import candidates, ollama_from_environment, read_address, server_name


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.168.1.20:11434", "http://192.168.1.20:11434"),
        (" https://llm.example.com/v1/ ", "https://llm.example.com/v1"),
        ("https://llm.example.com/v1/chat/completions", "https://llm.example.com/v1"),
        ("http://box:11434/api/tags", "http://box:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("ftp://box", None),
        ("/ollama", None),
        ("http://box:99999", None),
        ("http://", None),
        ("https://box/v1?key=x", None),
        ("not a url at all", None),
        ("", None),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: str | None) -> None:
    """Without a scheme, with the path of an endpoint, or as an address to listen on."""
    found = read_address(text)
    assert (None if found is None else str(found).rstrip("/")) == address


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("llm.example.com/v1", "https"),
        ("llm.example.com:9000", "https"),
        ("8.8.8.8", "https"),
        ("[2606:4700::1111]", "https"),
        ("example.localdomain", "https"),
        ("http://llm.example.com", "http"),
        ("localhost:9000", "http"),
        ("127.0.0.2", "http"),
        ("10.1.2.3:9000", "http"),
        ("[fd00::1]:9000", "http"),
        ("gpu-box", "http"),
        ("gpu.local", "http"),
        ("gpu.lan:9000", "http"),
        ("gpu.corp.internal", "http"),
        ("gpu.example.com:11434", "http"),
    ],
)
def test_a_key_is_sent_in_clear_text_only_nearby(text: str, scheme: str) -> None:
    """Without a scheme it is https, unless the address is one of a private network or has a local server's port."""
    found = read_address(text)
    assert found is not None
    assert found.scheme == scheme


@pytest.mark.parametrize(
    ("environment", "address", "discovered"),
    [
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1", True),
        ({"OLLAMA_HOST": "gpu-box"}, "http://gpu-box:11434/v1", False),
        ({"OLLAMA_HOST": "gpu-box:9000"}, "http://gpu-box:9000/v1", False),
        ({"OLLAMA_HOST": "'gpu-box'"}, "http://gpu-box:11434/v1", False),
        ({"OLLAMA_HOST": "gpu.example.com"}, "http://gpu.example.com:11434/v1", False),
        ({"OLLAMA_HOST": "https://gpu.example.com"}, "https://gpu.example.com/v1", False),
        ({"OLLAMA_BASE_URL": "http://a:11434", "OLLAMA_HOST": "b"}, "http://a:11434/v1", False),
        ({"OLLAMA_BASE_URL": "/ollama", "OLLAMA_HOST": "b"}, "http://b:11434/v1", False),
        ({"OLLAMA_BASE_URL": "http://localhost:11435/"}, "http://localhost:11435/v1", True),
    ],
)
def test_ollama_is_where_its_variables_say(environment: dict[str, str], address: str, *, discovered: bool) -> None:
    """Open WebUI's variable goes before Ollama's own; on this machine it need not be running."""
    found = ollama_from_environment(environment)
    assert found is not None
    assert (base_url(found), found.discovered) == (address, discovered)
    assert ollama_from_environment({"OLLAMA_HOST": ""}) is None


def test_openai_variables_have_an_order() -> None:
    """OpenAI's own variable goes before Open WebUI's."""
    both = {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_BASE_URL": "http://b/v1"}
    (first,) = from_environment(both)
    (second,) = from_environment({"OPENAI_API_BASE_URL": "http://b/v1"})
    assert (first.base_url, second.base_url) == ("http://a/v1", "http://b/v1")


def test_a_server_may_be_several_things() -> None:
    """Without a path the common one is tried first; known ports say which server it is; names are short and safe."""
    bare = candidates(URL("http://gpu:11434"), None)
    assert [(each.kind, each.base_url) for each in bare] == [
        ("ollama", "http://gpu:11434/v1"),
        ("ollama", "http://gpu:11434"),
    ]
    (given,) = candidates(URL("https://llm.example.com/openai/v1"), "k")
    assert (given.kind, given.base_url, given.key_source) == (
        "compatible",
        "https://llm.example.com/openai/v1",
        "settings",
    )
    names = [
        server_name(URL(url), "compatible")
        for url in ("https://www.LLM.example.com/v1", "http://openai", "http://a:81")
    ]
    assert names == ["llm-example-com", "openai-server", "a-81"]

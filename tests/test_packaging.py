"""What the package says about itself, and the files that deploy it."""

import importlib.util
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from holdfast import __version__
from tests.fork_server import ROOT
from tests.install.dockerfile import read_stages
from tests.servers import free_port

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = (ROOT / "docs" / "explanation" / "dependencies.md").read_text()


def table(heading: str) -> list[str]:
    """The names in the first column of the table below this heading."""
    section = DEPENDENCIES.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def test_each_required_dependency_has_a_reason() -> None:
    """The page lists exactly the required packages, of which there are at most 25."""
    names = [re.split(r"[\[<>=;]", each)[0].strip() for each in PROJECT["dependencies"]]
    assert table("Required") == sorted(names)
    assert len(names) <= 25
    assert f"has {len(names)} direct dependencies" in DEPENDENCIES


def test_each_extra_has_a_reason() -> None:
    """What users can install in addition is on the page."""
    extras = set(PROJECT["optional-dependencies"]) - {"bench", "dev", "docs"}
    assert {"cluster", "local", "providers"} <= extras <= set(table("Extras"))


@pytest.mark.parametrize(
    ("pattern", "instead", "complaint"),
    [
        (r"^starlette==\S+", "starlette==0.1", "starlette>="),
        (r"^starlette==(.|\n)*?(?=^[a-z])", "", "locked is nothing"),
        (r" --hash=sha256:.{64}$", " --hash=md5:0", "has no hashes"),
        (r"\A", "--index-url https://example.com/simple\n", "contains an address"),
    ],
)
def test_a_lock_that_disagrees_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, instead: str, complaint: str
) -> None:
    """`make check` needs every requirement locked in a version that satisfies it, with hashes and no address."""
    spec = importlib.util.spec_from_file_location("lock", ROOT / "requirements" / "lock.py")
    assert spec is not None
    assert spec.loader is not None
    lock = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lock", lock)  # where its dataclasses look for it
    spec.loader.exec_module(lock)
    assert list(lock.problems()) == []
    for file in (ROOT / "requirements").glob("*.lock"):
        shutil.copy(file, tmp_path)
    changed, count = re.subn(pattern, instead, (tmp_path / "runtime.lock").read_text(), count=1, flags=re.MULTILINE)
    assert count == 1
    (tmp_path / "runtime.lock").write_text(changed)
    monkeypatch.setattr(lock, "HERE", tmp_path)
    assert any(complaint in problem for problem in lock.problems())


def test_the_deployment_files_name_the_version() -> None:
    """A release that forgets one of these files would deploy another version."""
    files = {
        "compose.yaml": r"HOLDFAST_IMAGE:-holdfast:(\S+)}",
        "compose.cluster.yaml": r"HOLDFAST_IMAGE:-holdfast:(\S+)}",
        "deploy/kubernetes/base/kustomization.yaml": r"newTag: (\S+)",
        "deploy/helm/holdfast/Chart.yaml": r"ersion: (\d\S+)",
    }
    found = {name: set(re.findall(pattern, (ROOT / name).read_text())) for name, pattern in files.items()}
    assert found == {name: {__version__} for name in files}


def test_the_image_runs_as_nobody_special_with_a_password() -> None:
    """The image has a user that is not root, one volume, a health check, and never runs without a password."""
    image = read_stages(ROOT / "Dockerfile")[-1]
    assert int(image.user.partition(":")[0]) > 0
    assert image.volumes == ["/data"]
    assert image.env["HOLDFAST_DATA_DIR"].startswith("/data/")
    assert image.env["HOLDFAST_REQUIRE_PASSWORD"] == "true"
    assert image.healthcheck[0] == "python"
    assert [*image.entrypoint, *image.command] == ["holdfast", "serve", "--no-model"]


def test_the_health_check_asks_the_server_itself() -> None:
    """Variables for a proxy, which engines pass into containers, are not for it; a server that is gone fails it."""
    command = [sys.executable, *read_stages(ROOT / "Dockerfile")[-1].healthcheck[1:]]
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        nowhere = f"http://127.0.0.1:{free_port()}"
        proxies = {"http_proxy": nowhere, "HTTP_PROXY": nowhere, "HOLDFAST_PORT": str(server.server_port)}
        environment = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"} | proxies
        served = Thread(target=server.handle_request, daemon=True)
        served.start()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert "HTTP Error 404" in done.stderr, done.stderr  # from this server, which has no such page
        served.join()
    assert subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False).returncode != 0


def test_the_launchd_agent_is_a_property_list() -> None:
    """launchd restarts the server after a failure, and waits longer for it than runs may drain."""
    with (ROOT / "deploy" / "launchd" / "chat.holdfast.server.plist").open("rb") as file:
        agent = plistlib.load(file)
    assert agent["ProgramArguments"][1:] == ["serve", "--no-model"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ExitTimeOut"] > 10


def test_workflows_and_guides_call_targets_that_exist() -> None:
    """A renamed target would stop a release halfway."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    callers = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    calls = r"(?:run: |`|\$ |preserve-env=PATH )make ((?:[a-z][a-z-]*\b(?!=) ?)+)"
    called = {name for file in callers for line in re.findall(calls, file.read_text()) for name in line.split()}
    assert {"dist", "install", "check", "test", "test-install"} <= called
    assert sorted(called - targets) == []

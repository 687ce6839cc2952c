"""What the package says about itself, and the files that deploy it."""

import plistlib
import re
import tomllib
from typing import Any

from holdfast import __version__
from tests.install.dockerfile import read_stages
from tests.nursery import ROOT

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


def test_the_launchd_agent_is_a_property_list() -> None:
    """launchd restarts the server after a failure, and waits longer for it than runs may drain."""
    with (ROOT / "deploy" / "launchd" / "chat.holdfast.server.plist").open("rb") as file:
        agent = plistlib.load(file)
    assert agent["ProgramArguments"][1:] == ["serve", "--no-model"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ExitTimeOut"] > 10

"""The files that deploy the image and the service agree with the image, with each other and with the server."""

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.config import Config
from tests.fork_server import ROOT
from tests.install.dockerfile import read_stages

IMAGE: Final = read_stages(ROOT / "Dockerfile")[-1]
KUBERNETES: Final = ROOT / "deploy" / "kubernetes"
DRAIN: Final = float(Config.model_fields["drain"].default)


def load(path: Path) -> Any:
    yaml: Any = import_module("yaml")  # has no types here
    return yaml.safe_load(path.read_text())


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def test_the_systemd_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    """systemd knows every directive, rates the service as little exposed, and waits longer than runs may drain."""
    analyze = shutil.which("systemd-analyze")
    text = (ROOT / "deploy" / "systemd" / "holdfast.service").read_text()
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert float(stop) > DRAIN
    if analyze is None:
        pytest.skip("this machine has no systemd-analyze")
    unit = tmp_path / "holdfast.service"
    unit.write_text(text.replace("/opt/holdfast/bin/holdfast", sys.executable))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rated = [analyze, "security", "--offline=true", "--threshold=30", "--no-pager", str(unit)]
    done = subprocess.run(rated, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pods_fit_the_image() -> None:
    """User, port, volume and probes are those of the image and the server; nothing else can be written; a pod has time
    for its preStop hook and for runs to drain."""
    stateful = load(KUBERNETES / "base" / "statefulset.yaml")
    pod = stateful["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (port,) = container["ports"]
    assert str(port["containerPort"]) == IMAGE.env["HOLDFAST_PORT"]
    assert (str(pod["securityContext"]["runAsUser"]), pod["securityContext"]["runAsNonRoot"]) == (
        IMAGE.user.partition(":")[0],
        True,
    )
    confined = container["securityContext"]
    assert (confined["readOnlyRootFilesystem"], confined["allowPrivilegeEscalation"]) == (True, False)
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert [each["mountPath"] for each in container["volumeMounts"]] == [*IMAGE.volumes, "/tmp"]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 60
    command, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert pod["terminationGracePeriodSeconds"] > int(pause) + DRAIN


def test_service_and_disruption_budget_select_the_pods() -> None:
    """A selector that matches nothing is no error in Kubernetes."""
    base = KUBERNETES / "base"
    labels = load(base / "statefulset.yaml")["spec"]["template"]["metadata"]["labels"]
    assert load(base / "service.yaml")["spec"]["selector"] == labels
    budget = load(base / "poddisruptionbudget.yaml")["spec"]
    assert (budget["selector"]["matchLabels"], budget["maxUnavailable"]) == (labels, 1)
    for overlay in ("base", "cluster"):
        listed = load(KUBERNETES / overlay / "kustomization.yaml")["resources"]
        assert [name for name in listed if not (KUBERNETES / overlay / name).exists()] == []


def test_the_chart_stops_pods_as_the_manifests_do() -> None:
    """Helm's templates are no YAML, so the lines are compared that decide how a pod is probed and stopped."""
    chart = (ROOT / "deploy" / "helm" / "holdfast" / "templates" / "statefulset.yaml").read_text()
    manifest = (KUBERNETES / "base" / "statefulset.yaml").read_text()
    keys = "terminationGracePeriodSeconds path command periodSeconds failureThreshold timeoutSeconds "
    keys += "readOnlyRootFilesystem allowPrivilegeEscalation drop mountPath enableServiceLinks"
    line = re.compile(rf"^[ -]*({'|'.join(keys.split())}): ([^#\n]+?) *(?:#.*)?$", re.MULTILINE)
    found = line.findall(manifest)
    assert {key for key, _ in found} == set(keys.split())
    assert line.findall(chart) == found


def test_compose_has_one_container_and_one_volume() -> None:
    """Read-only but for the image's volume, reached from this machine only, with Ollama as an option."""
    compose = load(ROOT / "compose.yaml")
    server = compose["services"]["holdfast"]
    assert [name for name, each in compose["services"].items() if "profiles" not in each] == ["holdfast"]
    assert compose["services"]["ollama"]["profiles"] == ["ollama"]
    assert server["volumes"] == [f"data:{volume}" for volume in IMAGE.volumes]
    assert (server["read_only"], server["tmpfs"], server["cap_drop"]) == (True, ["/tmp"], ["ALL"])
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert seconds(server["stop_grace_period"]) > DRAIN
    assert "HOLDFAST_REQUIRE_PASSWORD" not in server["environment"]


def test_the_cluster_has_three_nodes_behind_nginx() -> None:
    """Each node has a name and a volume of its own, all share PostgreSQL and Redis, and nginx passes on to each."""
    services = load(ROOT / "compose.cluster.yaml")["services"]
    nodes = {name: each for name, each in services.items() if "HOLDFAST_NODE_ID" in each.get("environment", {})}
    assert set(services) == {*nodes, "nginx", "postgres", "redis"}
    assert [each["environment"]["HOLDFAST_NODE_ID"] for each in nodes.values()] == list(nodes)
    assert [each["volumes"] for each in nodes.values()] == [[f"{name}:/data"] for name in nodes]
    assert len({each["environment"]["HOLDFAST_STORE_URL"] for each in nodes.values()}) == 1
    assert len({each["environment"]["HOLDFAST_JOURNAL_URL"] for each in nodes.values()}) == 1
    assert all(seconds(each["stop_grace_period"]) > DRAIN for each in nodes.values())
    upstream = re.findall(
        r"^ *server (\w+):(\d+)", (ROOT / "deploy" / "nginx" / "cluster.conf").read_text(), re.MULTILINE
    )
    assert upstream == [(name, IMAGE.env["HOLDFAST_PORT"]) for name in nodes]
    assert len(nodes) == 3

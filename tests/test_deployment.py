"""The files that deploy the image and the service agree with the image, with each other and with the server."""

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.config import Config
from tests.fork_server import ROOT
from tests.guides import blocks, guide, typed
from tests.install.dockerfile import read_stages
from tests.servers import Nginx, needs

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


def test_the_launchd_agent_is_filled_in(tmp_path: Path) -> None:
    """The guide's command leaves no path that is not this user's."""
    (line,) = [line for commands in typed(guide("systemd")) for line in commands if line.startswith("sed ")]
    agents = tmp_path / "Library" / "LaunchAgents"
    agents.mkdir(parents=True)
    subprocess.run(
        ["bash", "-euc", line], env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, cwd=ROOT, check=True
    )
    with (agents / "chat.holdfast.server.plist").open("rb") as file:
        agent = plistlib.load(file)
    assert agent["ProgramArguments"][0] == f"{tmp_path}/.local/bin/holdfast"
    assert agent["StandardOutPath"] == f"{tmp_path}/Library/Logs/holdfast.log"
    assert "YOU" not in str(agent)


# ---- what needs an engine or a program that is not packaged ----


@pytest.mark.parametrize(
    ("file", "variables", "services"),
    [
        ("compose.yaml", {"COMPOSE_PROFILES": "ollama"}, {"holdfast", "ollama"}),
        (
            "compose.cluster.yaml",
            {"POSTGRES_PASSWORD": "x"},
            {"node1", "node2", "node3", "nginx", "postgres", "redis"},
        ),
    ],
)
def test_compose_accepts_the_files(file: str, variables: dict[str, str], services: set[str]) -> None:
    """Every key and value is one of Compose's schema, and no service is left out."""
    done = _compose(file, ["config", "--services"], variables)
    assert (done.returncode, set(done.stdout.split())) == (0, services), done.stderr


def test_a_cluster_without_a_password_is_refused() -> None:
    """Compose says which variable is missing."""
    done = _compose("compose.cluster.yaml", ["config"], {})
    assert done.returncode != 0
    assert "set POSTGRES_PASSWORD" in done.stderr


def _compose(file: str, arguments: list[str], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Compose needs no engine to check a file. Version 1 knows no names of projects."""
    program = needs(shutil.which("docker-compose"), "docker-compose")
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}

    def run(*command: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, input=stdin, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    text = (ROOT / file).read_text()
    if re.search(r"version v?1\.", run(program, "version").stdout):
        text = re.sub(r"^name: .*\n", "", text, flags=re.MULTILINE)
    return run(program, "--project-directory", str(ROOT), "-f", "-", *arguments, stdin=text)


def test_commands_of_the_container_guides_name_what_exists() -> None:
    """Files, profiles and services in calls of Compose are those of the compose files."""
    pages = [guide(name) for name in ("docker", "ollama", "upgrade")]
    inline = [code for page in pages for code in re.findall(r"`([^`\n]*docker compose [^`]*)`", page)]
    lines = [line for page in pages for commands in typed(page) for line in commands] + inline
    calls = [" ".join(line.split()).partition("docker compose ")[2] for line in lines if "docker compose " in line]
    assert len(calls) > 8
    for call in calls:
        words = shlex.split(call.partition(" #")[0].partition(" | ")[0])
        file = words[words.index("-f") + 1] if "-f" in words else "compose.yaml"
        services = load(ROOT / file)["services"]
        if "--profile" in words:
            assert words[words.index("--profile") + 1] in {
                profile for each in services.values() for profile in each.get("profiles", [])
            }
        (verb,) = [word for word in words if word in ("up", "logs", "exec", "pull", "build")][:1]
        rest = [word for word in words[words.index(verb) + 1 :] if not word.startswith("-")]
        if verb in ("exec", "logs") and rest:
            assert rest[0] in services, call


def test_the_load_balancer_of_the_cluster_is_valid() -> None:
    """nginx takes the file that compose.cluster.yaml mounts."""
    text = (ROOT / "deploy" / "nginx" / "cluster.conf").read_text()
    text = re.sub(r"server node\d:", "server 127.0.0.1:", text).replace("listen 8484;", "listen 127.0.0.1:PORT;")
    Nginx(text).close()


def test_the_routes_for_traefik_are_consistent() -> None:
    """Traefik is in no distribution, so its file is parsed here, and used by the tests of proxies where it is on the
    PATH: the keys are Traefik's, each router has a rule and a service that exists, and the address is the server's."""
    yaml: Any = import_module("yaml")
    page = guide("reverse-proxy")
    (block,) = blocks(page, "yaml")
    http = yaml.safe_load(block)["http"]
    assert set(http) == {"routers", "services"}
    (below_path,) = re.findall(r"In Traefik the rule becomes ``(.*?)``", page)
    matcher = r"(Host|PathPrefix)\(`[^`]+`\)"
    for router in http["routers"].values():
        assert set(router) == {"rule", "entryPoints", "service", "tls"}
        assert router["service"] in http["services"]
        for rule in (router["rule"], below_path):
            assert re.fullmatch(rf"{matcher}( && {matcher})*", rule)
    addresses = [
        server["url"] for service in http["services"].values() for server in service["loadBalancer"]["servers"]
    ]
    assert addresses == ["http://127.0.0.1:8484"]

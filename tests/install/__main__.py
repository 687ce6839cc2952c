"""Installs the wheel in a bare Debian root and uses it: `python -m tests.install --wheel W --previous W`.

Needs root and mmdebstrap. Everything happens below one temporary directory. The package index is reached with this
machine's pip settings."""

import argparse
import email
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import httpx

from tests.install.debian_root import PATH, DebianRoot
from tests.install.dockerfile import ImageStage, read_stages
from tests.install.server import InstalledServer

ROOT: Final = Path(__file__).resolve().parents[2]
MAX_WHEEL: Final = 8_000_000
MAX_INSTALLED: Final = 250_000_000
MAX_DEPENDENCIES: Final = 25
HOME: Final = "/var/lib/holdfast"
BIN: Final = "/opt/holdfast/bin"
SETTINGS: Final = {"HOME": HOME, "HOLDFAST_DATA_DIR": f"{HOME}/data", "HOLDFAST_MODELS_DIR": f"{HOME}/models"}
PASSWORD: Final = "correct horse battery"
TOOLS: Final = ("node", "npm", "gcc", "cc", "make", "git")


class InstallTest:
    """The steps share one root, one service user and one data directory."""

    def __init__(self, root: DebianRoot, wheel: Path, previous: Path) -> None:
        self._root = root
        self._wheel, self._previous = wheel, previous
        self._user = ""

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("the wheel is small and its page is complete", self._check_wheel),
            ("the root is bare", self._check_root),
            ("required dependencies alone", self._check_size),
            ("a missing extra is named", self._check_extras),
            ("install the previous version as a service", self._install_previous),
            ("download the small model", self._pull_model),
            ("chat with the small model", self._chat),
            ("kill -9 in the middle of an answer", self._kill),
            ("upgrade", self._upgrade),
            ("uninstall", self._uninstall),
            ("the image's steps: any user id, read-only root", self._check_image),
        ]

    # ---- the package ----

    def _check_wheel(self) -> str:
        size = self._wheel.stat().st_size
        assert size < MAX_WHEEL, f"{size} bytes"
        with zipfile.ZipFile(self._wheel) as archive:
            names = archive.namelist()
            (metadata_file,) = [name for name in names if name.endswith(".dist-info/METADATA")]
            metadata = email.message_from_bytes(archive.read(metadata_file))
        assert "holdfast/server/static/app/index.html" in names
        assert "holdfast/server/static/app/third-party-notices.txt" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)
        required = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
        assert len(required) <= MAX_DEPENDENCIES, required
        links = re.findall(r'(?:\]\(|src="|srcset=")([^)"\s]+)', str(metadata.get_payload()))
        assert links
        assert [link for link in links if not link.startswith("https://")] == []
        return f"{size / 1e6:.2f} MB, {len(required)} required dependencies"

    def _check_root(self) -> str:
        assert [tool for tool in TOOLS if self._root.has(tool)] == []
        return self._root.run("python3", "--version").stdout.strip()

    def _check_size(self) -> str:
        self._install("/opt/bare", self._wheel)
        packages = self._root.run("sh", "-c", "echo /opt/bare/lib/python3*/site-packages").stdout.strip()
        size = self._root.size(packages)
        assert size < MAX_INSTALLED, f"{size} bytes"
        listed = self._root.run("/opt/bare/bin/pip", "list", "--format=freeze").stdout.splitlines()
        assert not any(line.startswith("xllamacpp") for line in listed)
        return f"{size / 1e6:.0f} MB installed with pip itself, {len(listed)} packages"

    def _check_extras(self) -> str:
        env = {"HOME": "/tmp", "HOLDFAST_STORE_URL": "postgresql://nowhere/holdfast"}
        done = self._root.run("/opt/bare/bin/holdfast", "serve", env=env, check=False)
        assert done.returncode == 2
        assert "pip install 'holdfast[cluster]'" in done.stderr, done.stderr
        listed = self._root.run("/opt/bare/bin/holdfast", "models", "list", env={"HOME": "/tmp"})
        assert "pip install 'holdfast[local]'" in listed.stdout, listed.stdout
        shutil.rmtree(self._root.path / "opt/bare")
        return done.stderr.strip()

    def _install(self, environment: str, wheel: Path, extras: str = "") -> None:
        shutil.copy(wheel, self._root.path / "tmp")
        if not (self._root.path / environment.lstrip("/")).exists():
            self._root.run("python3", "-m", "venv", environment)
        self._root.run(f"{environment}/bin/pip", "install", "-q", "--no-cache-dir", f"/tmp/{wheel.name}{extras}")
        (self._root.path / "tmp" / wheel.name).unlink()

    # ---- a service ----

    def _install_previous(self) -> str:
        self._root.run("useradd", "--system", "--home-dir", HOME, "--create-home", "holdfast")
        ids = [self._root.run("id", flag, "holdfast").stdout.strip() for flag in ("-u", "-g")]
        self._user = ":".join(ids)
        self._install("/opt/holdfast", self._previous, "[local]")
        self._holdfast("password", "--stdin", stdin=f"{PASSWORD}\n")
        return self._holdfast("--version")

    def _holdfast(self, *arguments: str, stdin: str = "") -> str:
        done = self._root.run(
            f"{BIN}/holdfast", *arguments, user=self._user, env=SETTINGS, stdin=stdin, writable=[HOME]
        )
        return done.stdout.strip()

    def _serve(self) -> InstalledServer:
        command = [f"{BIN}/holdfast", "serve", "--port", "0"]
        line = self._root.command(command, user=self._user, env=SETTINGS, writable=[HOME])
        return InstalledServer(line).log_in(PASSWORD)

    def _pull_model(self) -> str:
        self._holdfast("models", "pull")
        (weights,) = (self._root.path / HOME.lstrip("/") / "models").glob("*.gguf")
        return f"{weights.name}, {weights.stat().st_size / 1e6:.0f} MB"

    def _chat(self) -> str:
        with self._serve() as server:
            assert server.get("/api/models")["default"] == "local/smollm2-135m"
            page = server.http.get("/")
            assert page.headers["content-type"].startswith("text/html")
            _, run = server.ask("What is the capital of France? Answer in one sentence.")
            answer = server.answer(run)
            assert answer.strip()
            server.stop()
        return " ".join(answer.split())[:100]

    def _kill(self) -> str:
        with self._serve() as server:
            before = server.transcript()
            session, run = server.ask("Write a long story about a lighthouse.")
            seen, pieces = "", 0
            for name, data in server.events(run):
                seen, pieces = (seen + data["text"], pieces + 1) if name == "text.delta" else (seen, pieces)
                if pieces == 20:
                    break
            assert server.get(f"/api/runs/{run}")["status"] == "running"
            server.kill()
        with self._serve() as server:
            assert server.wait_until_settled(run) == "interrupted"
            after = server.transcript()
            (_, _, question), (_, status, kept) = after.pop(session)
            assert question == "Write a long story about a lighthouse."
            assert status == "interrupted"
            assert kept.startswith(seen), (kept, seen)
            assert after == before
            server.stop()
        return f"{len(seen)} characters were seen, {len(kept)} are kept"

    def _upgrade(self) -> str:
        with self._serve() as server:
            before = server.transcript()
            server.stop()
        old = self._holdfast("--version")
        self._install("/opt/holdfast", self._wheel, "[local]")
        new = self._holdfast("--version")
        assert old != new
        self._check_missing_library()
        with self._serve() as server:
            assert server.transcript() == before
            session = next(iter(before))
            _, run = server.ask("And of Italy?", session)
            assert server.answer(run).strip()
            server.stop()
        self._holdfast("doctor")
        return f"{old} → {new}, {len(before)} sessions unchanged"

    def _check_missing_library(self) -> None:
        """A system without libgomp, as minimal ones are, is told what to install."""
        (library,) = (self._root.path / "usr/lib").glob("*-linux-gnu/libgomp.so.1")
        target = library.readlink()
        library.unlink()
        command = [f"{BIN}/holdfast", "models", "pull"]
        done = self._root.run(*command, user=self._user, env=SETTINGS, writable=[HOME], check=False)
        library.symlink_to(target)
        assert done.returncode == 1, done
        assert "`apt install libgomp1`" in done.stderr, done.stderr

    def _uninstall(self) -> str:
        self._root.run(f"{BIN}/pip", "uninstall", "-q", "-y", "holdfast")
        packages = self._root.path / "opt/holdfast"
        left = [path for path in packages.rglob("*holdfast*") if path != packages]
        assert left == [], left
        data = self._root.path / HOME.lstrip("/") / "data"
        assert (data / "holdfast.db").exists()
        shutil.rmtree(packages)
        return "no file of the package is left; the data is"

    # ---- the image ----

    def _check_image(self) -> str:
        """The steps of the Dockerfile, on this root instead of the Python image. Of the first stage it is the one that
        installs: the wheel is there."""
        build, stage = read_stages(ROOT / "Dockerfile")
        (self._root.path / "dist").mkdir()
        shutil.copy(self._wheel, self._root.path / "dist")
        shutil.copytree(ROOT / "requirements", self._root.path / build.directory.lstrip("/") / "requirements")
        self._root.run("sh", "-c", f"cd {build.directory} && {build.runs[-1]}")
        for step in stage.runs:
            self._root.run("sh", "-c", step)
        models = self._root.path / HOME.lstrip("/") / "models"
        first = self._run_image(stage, stage.user, models)
        shutil.rmtree(self._root.path / "data")
        for step in stage.runs:
            self._root.run("sh", "-c", step)
        self._run_image(stage, "1234567:0", models)
        return first

    def _run_image(self, stage: ImageStage, user: str, models: Path) -> str:
        env = {"PATH": PATH, **stage.env, "HOLDFAST_PORT": str(_free_port())}
        line = self._root.command([*stage.entrypoint, *stage.command], user=user, env=env, writable=stage.volumes)
        with InstalledServer(line) as server:
            assert server.lines[0].startswith("Password for logging in: "), server.lines
            refused = server.http.get("/api/sessions")
            assert refused.status_code == 401, refused.text
            server.log_in(server.lines[0].split()[-1])
            # As after `holdfast models pull` in the container.
            inside = self._root.path / "data" / "models"
            shutil.copytree(models, inside)
            for path in (inside, *inside.iterdir()):
                os.chown(path, int(user.partition(":")[0]), 0)
            _, run = server.ask("What is the capital of Spain?")
            answer = server.answer(run)
            assert answer.strip()
            self._root.run(*stage.healthcheck, user=user, env=env, writable=stage.volumes)
            server.stop()
        with InstalledServer(line) as server:
            assert server.lines == []  # the password is shown once
            server.kill()
        unhealthy = self._root.run(*stage.healthcheck, user=user, env=env, writable=stage.volumes, check=False)
        assert unhealthy.returncode != 0
        return " ".join(answer.split())[:60]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.install", description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--previous", type=Path, required=True, help="the wheel to upgrade from")
    parser.add_argument("--suite", default="bookworm", help="the Debian release")
    parser.add_argument("--archive", type=Path, help="where the root is kept for the next time")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        print("install: needs root and mmdebstrap (apt install mmdebstrap)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="holdfast-install-") as place:
        began = time.monotonic()
        os.chmod(place, 0o755)  # the service user must get to the root
        root = DebianRoot(Path(place) / "root")
        root.create(options.archive or Path(place) / "root.tar", options.suite)
        print(f"install: {options.suite} root made in {time.monotonic() - began:.0f} s", flush=True)
        test = InstallTest(root, options.wheel, options.previous)
        for name, step in test.steps():
            at = time.monotonic()
            try:
                found = step()
            except (AssertionError, OSError, httpx.HTTPError):
                traceback.print_exc()
                print(f"install: FAILED: {name}", flush=True)
                return 1
            print(f"install: {name}: {found} ({time.monotonic() - at:.0f} s)", flush=True)
        print(f"install: {len(test.steps())} steps passed in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

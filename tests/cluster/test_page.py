"""Executes what the cluster guide shows."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import argon2
import psycopg

from tests.cluster.conftest import Cluster
from tests.fork_server import ROOT
from tests.servers import PostgresServer

PAGE = ROOT / "docs" / "how-to" / "cluster.md"


def test_the_commands_of_the_page_work(cluster: Cluster, durable_postgres: PostgresServer, tmp_path: Path) -> None:
    """Doctor, password and token against PostgreSQL, as they are written there; a node then wants that password."""
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with psycopg.connect(durable_postgres.url(), autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS holdfast")
        db.execute("CREATE DATABASE holdfast")
    function = f'holdfast() {{ {shlex.quote(sys.executable)} -m holdfast "$@"; }}\n'
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "DB": f"127.0.0.1:{durable_postgres.port}",
        "HOLDFAST_DATA_DIR": str(tmp_path / "data"),
        "HOLDFAST_MODELS_DIR": str(tmp_path / "none"),
    }
    command = ["bash", "-uo", "pipefail", "-c", function + block]
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr, done.stderr
    assert "PostgreSQL 15" in done.stdout or "PostgreSQL 1" in done.stdout, done.stdout
    token = done.stdout.splitlines()[-1].strip()
    assert token.startswith("hf_"), done.stdout
    node = cluster.start(0, store_url=durable_postgres.url("holdfast"))
    assert node.http.get("/api/sessions").status_code == 401
    assert node.http.get("/api/sessions", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_of_nodes_that_start_at_once_one_creates_the_password(durable_postgres: PostgresServer, tmp_path: Path) -> None:
    """On an empty database, with `require_password`: what that node prints is the password of all."""
    with psycopg.connect(durable_postgres.url(), autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS first_password")
        db.execute("CREATE DATABASE first_password")
    program = (
        "from pathlib import Path; from holdfast.config import Config; from holdfast.app import lifecycle\n"
        "config = Config(data_dir=Path('unused'), store_url={url!r}, require_password=True)\n"
        "print(lifecycle.create_first_password(config))"
    ).format(url=durable_postgres.url("first_password"))
    starting = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(3)
    ]
    printed = [node.communicate(timeout=60)[0].strip() for node in starting]
    assert sorted(map(len, printed)) == [4, 4, 23], printed  # "None" twice
    with psycopg.connect(durable_postgres.url("first_password")) as db:
        (keyring,) = db.execute("SELECT value FROM holdfast.meta WHERE key = 'keyring'").fetchone() or ("{}",)
    argon2.PasswordHasher().verify(json.loads(keyring)["password"], max(printed, key=len))


def test_doctor_says_what_is_wrong_with_a_server(cluster: Cluster, tmp_path: Path) -> None:
    """A PostgreSQL that does not answer is a finding with the reason in it, not a traceback."""
    url = "postgresql://holdfast@127.0.0.1:1/none"
    command = [sys.executable, "-m", "holdfast", "doctor", "--data-dir", str(tmp_path / "data")]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_STORE_URL": url}
    done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "PostgreSQL cannot be used" in done.stdout
    assert "Traceback" not in done.stderr, done.stderr

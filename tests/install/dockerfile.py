"""Reads the stages of the Dockerfile, so that their steps can be executed where there is no container engine."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class ImageStage:
    """One stage. Knows only the instructions that our Dockerfile uses, and raises ValueError for others."""

    runs: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    directory: str = "/"
    volumes: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def read_stages(path: Path) -> list[ImageStage]:
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE))
    stages: list[ImageStage] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append(ImageStage())
        elif stages:
            _add(stages[-1], name, rest.strip())
    return stages


def _add(stage: ImageStage, name: str, rest: str) -> None:
    match name:
        case "RUN":
            stage.runs.append(rest)
        case "ENV":
            stage.env |= dict(word.split("=", 1) for word in shlex.split(rest))
        case "USER":
            stage.user = rest
        case "WORKDIR":
            stage.directory = rest
        case "VOLUME":
            stage.volumes.append(rest)
        case "HEALTHCHECK":
            stage.healthcheck = json.loads(rest.partition("CMD ")[2])
        case "ENTRYPOINT":
            stage.entrypoint = json.loads(rest)
        case "CMD":
            stage.command = json.loads(rest)
        case "COPY" | "EXPOSE":
            pass
        case _:
            raise ValueError(f"unknown instruction {name}")

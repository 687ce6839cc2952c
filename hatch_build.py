"""A wheel carries the built web app; an editable install leaves building to `make install`."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _build(root: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("holdfast_web_build", Path(root) / "web" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WebAppHook(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, where the machine has none that is new enough."""
        build = _build(self.root)
        return [] if self._is_left_out() or build.node_directory() is not None else [build.NODE_WHEEL]

    def _is_left_out(self) -> bool:
        return self.target_name != "wheel" or "HOLDFAST_NO_WEB" in os.environ

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self._is_left_out():
            return
        build = _build(self.root)
        try:
            build.npm("build")
        except build.CannotBuild as error:
            raise SystemExit(
                f"The web app could not be built: {error}\nA wheel without it can be made with HOLDFAST_NO_WEB=1."
            ) from error

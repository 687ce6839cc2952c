"""Build hook: puts the built web app into a wheel. An editable install leaves that to `make install`."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _load_web_build(root: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("holdfast_web_build", Path(root) / "web" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WebAppHook(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, if the machine has none that is new enough."""
        build = _load_web_build(self.root)
        return [] if self._is_skipped() or build.node_directory() is not None else [build.NODE_WHEEL]

    def _is_skipped(self) -> bool:
        return self.target_name != "wheel" or "HOLDFAST_NO_WEB" in os.environ

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self._is_skipped():
            return
        build = _load_web_build(self.root)
        try:
            build.run_scripts("build")
        except build.BuildError as error:
            raise SystemExit(
                f"The web app could not be built: {error}\nSet HOLDFAST_NO_WEB=1 to build a wheel without it."
            ) from error

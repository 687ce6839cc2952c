"""Build hooks: put the built web app into a wheel, and make the links of the long description absolute. An editable
install leaves building the web app to `make install`."""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


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


class ReadmeHook(MetadataHookInterface):  # type: ignore[misc,unused-ignore]
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        (version,) = re.findall(
            r'^__version__ = "(.+)"$', (root / "src/holdfast/__init__.py").read_text(), re.MULTILINE
        )
        text = absolute_links((root / "README.md").read_text(), metadata["urls"]["Source"], f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(text: str, source: str, tag: str) -> str:
    """Links of README.md as they work on a package index: images from the raw files of the tag, pages from its tree."""
    raw = source.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def replace(match: re.Match[str]) -> str:
        before, path = match[1], match[2]
        base = f"{raw}/{tag}" if path.endswith((".png", ".svg")) else f"{source}/blob/{tag}"
        return f"{before}{base}/{path}"

    return re.sub(r'(\]\(|src="|srcset=")(?!https?://|#)([^)"\s]+)', replace, text)

"""Builds the documentation site into build/docs; fails if it would load from another host."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SITE: Final = ROOT / "build" / "docs"
# Elements that load something, unlike <a href>. A canonical link or a namespace loads nothing.
_LOADS: Final = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*"
    r"\bsrc(?:set)?=[\"']?(?:https?:)?//[^\"'> ]+"
    r"|<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^\"'> ]+"
    r"|(?:@import\s+|url\()[\"']?(?:https?:)?//[^\"') ]+"
)


def main() -> int:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean"]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement for the theme's successor
    if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode != 0:
        return 1
    pages = [path for path in SITE.rglob("*") if path.suffix in (".html", ".css")]
    loads = [
        f"{path.relative_to(SITE)}: {load[0]}"
        for path in pages
        for load in _LOADS.finditer(path.read_text())
    ]
    if loads:
        print("The site would load from other hosts:", *loads, sep="\n", file=sys.stderr)
        return 1
    print(f"Documentation built: {SITE.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())

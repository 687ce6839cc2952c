"""Opens the browser for a person who uses this machine directly, not over a network. When it is opened: `cli.serve`."""

import os
import sys
import threading
import webbrowser
from collections.abc import Mapping


def is_desktop(environment: Mapping[str, str], platform: str) -> bool:
    """Whether somebody reads the terminal and has a display here: not over SSH, in a container or as a service."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or environment.get("SSH_CONNECTION"):
        return False
    return platform == "darwin" or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def open_browser(url: str) -> None:
    """Returns at once. A browser that runs in the terminal, or that does not start, is left out: the URL is printed."""
    threading.Thread(target=_open, args=(url,), daemon=True).start()


def _open(url: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # Graphical browsers have classes of their own, except for the one that the user has chosen.
    if type(browser) is not webbrowser.GenericBrowser or os.environ.get("BROWSER"):
        browser.open(url)

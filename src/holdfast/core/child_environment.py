"""The environment variables that child processes inherit."""

import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|^HOLDFAST_|^AWS_|_DSN$|SSH_AUTH_SOCK", re.IGNORECASE
)
_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that look like secrets or hold a URL with a password."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and not _PASSWORD_IN_URL.search(value)
    }

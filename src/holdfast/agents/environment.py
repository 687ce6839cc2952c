"""What other programs may know of the server's environment."""

import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|^HOLDFAST_|^AWS_|_DSN$|SSH_AUTH_SOCK", re.IGNORECASE
)
_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command may know: names that sound like secrets, and addresses with a password in them, are left out."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and not _PASSWORD_IN_URL.search(value)
    }

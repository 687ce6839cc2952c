"""The environment variables that commands and agent programs inherit: only those that are known to be needed, because a
secret can have any name. The shell adds the names in `[shell] env` (`tools.shell`). MCP servers get the list of the MCP
SDK instead (`tools.mcp.stdio_transport`)."""

import re
from collections.abc import Collection, Mapping
from typing import Final

_ALLOWED: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|COLORTERM|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TMP|TEMP|PWD|EDITOR|PAGER"
    r"|HTTPS?_PROXY|ALL_PROXY|NO_PROXY|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|OMP_\w+|CUDA_\w+|GGML_\w+|ROCR?_\w+|HSA_\w+"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA|LOCALAPPDATA",
    re.IGNORECASE,
)
_PASSWORD_IN_URL: Final = re.compile(r"://[^/\s@]*@")


def inherited_variables(environment: Mapping[str, str], also: Collection[str] = ()) -> dict[str, str]:
    """The allowed part of the environment and the variables named in `also`. An allowed variable with credentials in a
    URL, such as a proxy's, is left out."""
    return {
        name: value
        for name, value in environment.items()
        if name in also or (_ALLOWED.fullmatch(name) and not _PASSWORD_IN_URL.search(value))
    }

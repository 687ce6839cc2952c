"""The result of one check that `holdfast doctor` prints. The checks: `cli.doctor`, which names the others."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """If it is not `ok`, it needs attention. A warning is `ok`: it does not fail the check as a whole."""

    what: str
    ok: bool
    text: str
    warning: bool = False

"""Who decides whether a tool runs. Pure: the rule for a call follows from the tool, the settings and what a person has
allowed before. Where allowances are kept is the caller's (`Grants`)."""

from collections.abc import Collection, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from holdfast.agents.tools.port import Rule
from holdfast.core.events import Decision
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """A person allowed a tool (within `scope`, if that is not empty) for a session, or for good."""

    tool: str
    scope: str = ""
    lasts: Literal["session", "always"] = "session"


class Grants(Protocol):
    """What was allowed before. A `session` grant counts in its session, an `always` grant in all of its owner's."""

    async def granted(self, owner: OwnerId, session: SessionId) -> Collection[Grant]: ...

    async def remember(self, owner: OwnerId, session: SessionId, grant: Grant) -> None:
        """Durable when it returns. The same grant may come again."""


class NoGrants:
    """Nothing is remembered: everything that asks, asks each time."""

    async def granted(self, owner: OwnerId, session: SessionId) -> Collection[Grant]:
        return ()

    async def remember(self, owner: OwnerId, session: SessionId, grant: Grant) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Policy:
    """`rules` are the owner's settings: a tool's name, or a pattern like `github__*`; the most exact one counts."""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    never_always: frozenset[str] = frozenset()
    """Tools that ask at least once per session, whatever the settings say: `shell` on an open loopback server."""


def rule_for(policy: Policy, tool: str, default: Rule) -> Rule:
    """The standing rule: settings before the tool's own default."""
    found = policy.rules.get(tool)
    if found is None:
        patterns = [pattern for pattern in policy.rules if fnmatchcase(tool, pattern)]
        found = policy.rules[max(patterns, key=len)] if patterns else default
    return "ask" if found == "allow" and tool in policy.never_always else found


def verdict(policy: Policy, tool: str, default: Rule, grants: Collection[Grant] = (), scope: str = "") -> Rule:
    """What happens to this call. A grant turns *ask* into *allow*; it never overrides *deny*."""
    rule = rule_for(policy, tool, default)
    if rule != "ask":
        return rule
    return "allow" if any(_covers(policy, grant, tool, scope) for grant in grants) else "ask"


def _covers(policy: Policy, grant: Grant, tool: str, scope: str) -> bool:
    if grant.tool != tool or grant.scope not in ("", scope):
        return False
    return grant.lasts == "session" or tool not in policy.never_always


def choices(policy: Policy, tool: str) -> tuple[Decision, ...]:
    """The answers that a person can be offered."""
    return ("once", "session", "deny") if tool in policy.never_always else ("once", "session", "always", "deny")


def grant_of(policy: Policy, decision: Decision, tool: str, scope: str) -> Grant | None:
    """What an answer allows beyond the call that it answers. An *always* that this tool cannot have counts once."""
    if decision == "session":
        return Grant(tool, scope, "session")
    if decision == "always" and tool not in policy.never_always:
        return Grant(tool, scope, "always")
    return None

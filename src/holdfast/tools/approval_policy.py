"""Tool approval policy: whether a call is allowed, denied, or has to be approved by a person. Pure: the decision
follows from the tool, the settings and the grants. Storing grants is up to the caller's `GrantStore`. How a question is
asked and answered: `engine.transactions.approvals`. That the shell is not always allowed without a password:
`server.routes.settings`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from holdfast.core.events import Decision
from holdfast.core.ids import OwnerId, SessionId
from holdfast.ports.store import ToolGrant
from holdfast.ports.tool import Rule


class GrantStore(Protocol):
    """Permissions that people gave. One without a session counts in all sessions of its owner."""

    async def grants(self, owner: OwnerId, sid: SessionId) -> Sequence[ToolGrant]:
        """Those that count in a session."""

    async def grant(self, tool: str, scope: str, owner: OwnerId, sid: SessionId | None) -> None:
        """Stores one durably. Storing the same one again changes nothing."""


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """`rules` are the owner's settings by tool name or pattern, such as `github__*`; the most specific one counts."""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    never_always: frozenset[str] = frozenset()
    """Tools that ask at least once per session, whatever the settings: `shell` on a server without a password."""


def rule_for(policy: ApprovalPolicy, tool: str, default: Rule) -> Rule:
    """The rule for a tool without grants: the settings, else the tool's default."""
    rule = _explicit_rule(policy, tool) or default
    return "ask" if rule == "allow" and tool in policy.never_always else rule


def _explicit_rule(policy: ApprovalPolicy, tool: str) -> Rule | None:
    if tool in policy.rules:
        return policy.rules[tool]
    patterns = [pattern for pattern in policy.rules if fnmatchcase(tool, pattern)]
    return policy.rules[max(patterns, key=len)] if patterns else None


def verdict(
    policy: ApprovalPolicy, tool: str, default: Rule, grants: Collection[ToolGrant] = (), scope: str = ""
) -> Rule:
    """Decides about one call. A grant turns *ask* into *allow*; it never overrides *deny*, and one for all sessions
    does not override a rule of the owner that says *ask*."""
    rule = rule_for(policy, tool, default)
    if rule != "ask":
        return rule
    return "allow" if any(_covers(policy, grant, tool, scope) for grant in grants) else "ask"


def _covers(policy: ApprovalPolicy, grant: ToolGrant, tool: str, scope: str) -> bool:
    if grant.tool != tool or grant.scope not in ("", scope):
        return False
    return grant.session_id is not None or why_never_always(policy, tool) is None


def why_never_always(policy: ApprovalPolicy, tool: str) -> str | None:
    """Why *always* has no effect for a tool, in words for people; None if it has."""
    if tool in policy.never_always:
        return "To always allow it, set a password in Settings → Password and tokens."
    if _explicit_rule(policy, tool) == "ask":
        return "A rule in the settings requires approval in every chat."
    return None


def lasting(policy: ApprovalPolicy, decision: Decision, tool: str) -> Literal["session", "always"] | None:
    """For how long a decision allows more than its own call. An *always* that this tool cannot have counts as
    *once*."""
    if decision == "session" or (decision == "always" and why_never_always(policy, tool) is None):
        return decision
    return None

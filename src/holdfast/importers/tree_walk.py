"""Walks a tree of messages whose nodes name their parents. The tree of a session of ours: `core.message_tree`."""

from collections.abc import Callable, Mapping

from holdfast.core.ids import MessageId


def add_tree(
    parents: Mapping[str, str | None],
    is_user: Callable[[str], bool],
    add: Callable[[str, MessageId | None, bool], MessageId | None],
) -> None:
    """Calls `add` with each node, the message of its parent and whether a person's message follows, parents first and
    siblings in order. A node with an unknown parent is a root. If `add` returns None, the children of the node go to
    its parent. Nodes of a cycle are left out."""
    children: dict[str | None, list[str]] = {}
    for key, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(key)
    stack: list[tuple[str, MessageId | None]] = [(key, None) for key in reversed(children.get(None, []))]
    while stack:
        key, above = stack.pop()
        below = children.get(key, [])
        mid = add(key, above, any(map(is_user, below)))
        stack += [(child, mid or above) for child in reversed(below)]

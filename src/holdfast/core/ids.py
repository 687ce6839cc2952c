"""The names of things. Ids are opaque strings, made by the `Ids` port and never parsed."""

from typing import NewType

OwnerId = NewType("OwnerId", str)
SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
RunId = NewType("RunId", str)
ApprovalId = NewType("ApprovalId", str)
FileId = NewType("FileId", str)
FactId = NewType("FactId", str)
NodeId = NewType("NodeId", str)
"""One incarnation of a process: a restart is a new node."""

LOCAL = OwnerId("local")
"""The only owner until there are several users; every row carries one."""

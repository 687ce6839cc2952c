"""Types of ids: opaque strings made by the `Ids` port and never parsed. How they are made: `system`."""

from typing import NewType

OwnerId = NewType("OwnerId", str)
SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
RunId = NewType("RunId", str)
ApprovalId = NewType("ApprovalId", str)
FileId = NewType("FileId", str)
FactId = NewType("FactId", str)
ShareId = NewType("ShareId", str)
SubscriptionId = NewType("SubscriptionId", str)
ProjectId = NewType("ProjectId", str)
PromptId = NewType("PromptId", str)
PersonaId = NewType("PersonaId", str)
NodeId = NewType("NodeId", str)  # A process of the engine; without a configured name, each start is a new node

LOCAL = OwnerId("local")  # The only owner so far; every row has an owner

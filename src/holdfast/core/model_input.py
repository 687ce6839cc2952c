"""Which messages a model is shown: those after the nearest compaction, without answers that have no output. What is
left out because the context is full: `agents.chat.context_window`; how messages are written for a model:
`agents.chat.model_messages`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.ids import MessageId
from holdfast.core.session import Compaction, Message
from holdfast.core.transcript import has_output, steered_ids


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What the model is shown: the summary of what was compacted, and the messages after it."""

    summary: str | None
    messages: tuple[Message, ...]


def model_input(messages: Sequence[Message], compactions: Mapping[MessageId, Compaction]) -> ModelInput:
    """The end of the path `messages`, back to the nearest compaction, without answers that have neither output nor
    text that the user added."""
    kept: list[Message] = []
    summary: str | None = None
    for message in reversed(messages):
        if message.id in compactions:
            summary = compactions[message.id].summary
            break
        if message.role == "user" or has_output(message.parts) or steered_ids(message.parts):
            kept.append(message)
    kept.reverse()
    return ModelInput(summary, tuple(kept))

"""The system prompt: what the agent is for, what the person set, what is remembered, what was summarised. Pure."""

from collections.abc import Sequence

from holdfast.core.parts import Part, Remembered

INSTRUCTIONS = "You are a helpful assistant. Answer in the language of the person, briefly and exactly."

WITH_TOOLS = (
    "You have tools and a directory of your own to work in. Use a tool when it gets you to a better answer, and look "
    "at its result before you go on. If a call is denied, do not try to get the same by another way."
)

GO_ON = (
    "Your answer was cut off by a technical interruption. Go on exactly where it stops, in the middle of the word if "
    "need be. Do not repeat anything, do not begin again and do not mention the interruption."
)


def system_prompt(
    instructions: str, own: str | None, summary: str | None, parts: Sequence[Part], *, tools: bool
) -> str | None:
    """`own` is what the person set for the session; `parts` are this run's, for what was remembered."""
    sections = [
        instructions,
        WITH_TOOLS if tools else "",
        own or "",
        _remembered(parts),
        f"Summary of the conversation so far, of which you see only the end:\n{summary}" if summary else "",
    ]
    return "\n\n".join(section.strip() for section in sections if section.strip()) or None


def _remembered(parts: Sequence[Part]) -> str:
    texts = [str(item.get("text", "")) for part in parts if isinstance(part, Remembered) for item in part.items]
    lines = [f"- {text.strip()}" for text in texts if text.strip()]
    return "\n".join(["What you remember from earlier conversations:", *lines]) if lines else ""

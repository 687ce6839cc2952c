"""Questions of a model to its user, which are calls of a tool: what is asked, which answers fit, and what the model
reads. How one is asked and answered: `engine.transactions.approvals`."""

from collections.abc import Mapping
from typing import Final

from holdfast.core.events import Decision
from holdfast.core.parts import Json

ASK_USER: Final = "ask_user"
ID_KIND: Final = "ask"
"""Of the ids of such questions. The engine makes them; a program can give its calls any name."""
MAX_OPTIONS: Final = 10
MAX_OPTION: Final = 200  # Characters
MAX_QUESTION: Final = 4000
MAX_ANSWER: Final = 20_000
ANSWER: Final = "answer"  # The field of an answer
SKIPPED: Final = "The user did not answer this question. Continue without the answer."


def is_user_question(approval_id: str) -> bool:
    return approval_id.startswith(f"{ID_KIND}_")


def options(args: Mapping[str, Json]) -> list[str]:
    """The answers to choose from."""
    found = args.get("options")
    return [str(option) for option in found] if isinstance(found, list) else []


def takes_text(args: Mapping[str, Json]) -> bool:
    """Whether any text is an answer. A question without options takes nothing else."""
    return args.get("allow_text") is not False or not options(args)


def answer_problem(args: Mapping[str, Json], answer: Json) -> str | None:
    """Why this is no answer to the question; None if it is."""
    if not isinstance(answer, str) or not answer.strip():
        return "must be a non-empty string"
    if len(answer) > MAX_ANSWER:
        return f"must have at most {MAX_ANSWER} characters"
    if not takes_text(args) and answer not in options(args):
        return "must be one of the options"
    return None


def result_of(decision: Decision, note: str | None) -> str:
    """What the model reads: the answer, or that there is none. `note`: the answer, or why nobody gave one."""
    if decision != "deny":
        return note or ""
    return SKIPPED if note is None else f"{note} Continue without the answer."

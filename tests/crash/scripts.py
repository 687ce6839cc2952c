"""What the agent answers, as a function of the question: the server plays it, the client knows how it must read.

A question is `<script> <label> <numbers …>`. Labels are unique in a directory, and so are the call ids made of them.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from holdfast.agents.scripted_agent import Action, CallTool, Hang, Meet, Say, SayTokens, TakeSteering, Think
from holdfast.core.events import StepStarted, Usage
from holdfast.core.parts import TextPart
from holdfast.ports.agent import Turn

AWKWARD = 'größer, 🦀, \u2028, „Zitat“ "x\\y"\r\n\t\x00|'
"""Text that a careless encoding would change."""


def of_turn(turn: Turn) -> Sequence[Action]:
    """The script for the question that the turn answers."""
    asked = turn.input.messages[-1].parts[0]
    assert isinstance(asked, TextPart)
    return of_question(asked.text)


def of_question(question: str) -> Sequence[Action]:
    name, label, *numbers = question.split()
    return _SCRIPTS[name](label, *map(int, numbers))


def words(question: str) -> str:
    """All text of the complete answer."""
    return "".join(_text(action) for action in of_question(question))


def thoughts(question: str) -> str:
    return "".join(action.text for action in of_question(question) if isinstance(action, Think))


def calls(question: str) -> dict[str, CallTool]:
    return {action.call_id: action for action in of_question(question) if isinstance(action, CallTool)}


def _text(action: Action) -> str:
    match action:
        case Say(text):
            return text
        case SayTokens(count):
            return "".join(f"t{n} " for n in range(count))
        case _:
            return ""


def _tokens(label: str, count: int = 40, rate: int = 0) -> Sequence[Action]:
    return [Say(f"{label} {AWKWARD}"), SayTokens(count, rate or None)]


def _tool(label: str) -> Sequence[Action]:
    """Everything that a part can be, with one finished tool and one that prints."""
    return [
        StepStarted(0),
        Think(f"{label} thinks {AWKWARD}"),
        Say(f"{label} before. "),
        CallTool(
            f"{label}-a", "read", {"path": "/ä", "n": [1, 2.5, None]}, {"lines": 3}, writes_args=('{"path"', ': "/ä"}')
        ),
        StepStarted(1),
        Say(f"{label} between {AWKWARD}. "),
        CallTool(f"{label}-b", "write", {"path": "/b"}, "written", output=("one\n", "two\n")),
        Say(f"{label} after."),
    ]


def _asks(label: str) -> Sequence[Action]:
    return [
        Say(f"{label} before. "),
        CallTool(f"{label}-ask", "shell", {"run": "make"}, 0, asks=True),
        Say(f"{label} after."),
    ]


def _steered(label: str) -> Sequence[Action]:
    """Takes what was added while it waited for an answer, at the step that follows."""
    return [*_asks(label)[:2], StepStarted(1), TakeSteering(), Say(f"{label} after.")]


def _questions(label: str) -> Sequence[Action]:
    asked = {"question": "Which port?", "options": ["80", "443"]}
    return [Say(f"{label} before. "), CallTool(f"{label}-q", "ask_user", asked, asks_user=True), Say(f"{label} after.")]


def _spends(label: str) -> Sequence[Action]:
    """A thousand tokens, reported before a tool runs."""
    return [Say(f"{label} before. "), Usage(900, 100), CallTool(f"{label}-a", "read", {}, "read"), Say(" after.")]


def _hold(label: str) -> Sequence[Action]:
    """Stops in the middle until the test opens the gate that is called like the label."""
    return [Say(f"{label} {AWKWARD}"), Meet(label), Say(f"{label} after.")]


def _hang(label: str) -> Sequence[Action]:
    return [Say(f"{label} begins. "), SayTokens(20), Hang()]


def _empty(label: str) -> Sequence[Action]:
    return [Hang()]


def _flood(label: str, kilobytes: int, rate: int) -> Sequence[Action]:
    """Fills a disk: one kilobyte at a time."""
    return [Say(f"{n:08d}{'x' * 1016}", after=1.0 / rate) for n in range(kilobytes)]


def _mixed(label: str, seed: int) -> Sequence[Action]:
    """A turn of a second or so with a bit of everything."""
    chance = Random(seed)
    actions: list[Action] = [Say(f"{label} ")]
    for n in range(chance.randint(2, 6)):
        kind = chance.choice(("say", "think", "tokens", "tokens", "tokens", "call", "call"))
        if kind == "say":
            actions.append(Say(AWKWARD * chance.randint(1, 20), after=chance.random() / 50))
        elif kind == "think":
            actions.append(Think(f"{n} {AWKWARD}", after=chance.random() / 50))
        elif kind == "tokens":
            actions.append(SayTokens(chance.randint(5, 150), chance.choice((None, 300.0, 1000.0, 3000.0))))
        else:
            actions.append(
                CallTool(
                    f"{label}-{n}",
                    chance.choice(("read", "write")),
                    {"n": n},
                    {"seed": seed},
                    takes=chance.random() / 20,
                    output=tuple(f"{i}\n" for i in range(chance.randint(0, 3))),
                    repeatable=chance.random() < 0.3,
                    asks=chance.random() < 0.1,
                )
            )
    return [*actions, Say(" end.")]


_SCRIPTS: Final[Mapping[str, Callable[..., Sequence[Action]]]] = {
    "tokens": _tokens,
    "tool": _tool,
    "asks": _asks,
    "steered": _steered,
    "questions": _questions,
    "spends": _spends,
    "hold": _hold,
    "hang": _hang,
    "empty": _empty,
    "flood": _flood,
    "mixed": _mixed,
}

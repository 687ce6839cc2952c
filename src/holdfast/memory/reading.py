"""Facts through a model: what it is asked, and how its answer is read. Pure; whoever has a model asks it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from holdfast.core.parts import plain_text
from holdfast.memory.drafts import MAX_TEXT, OWN_WORDS, Draft
from holdfast.ports import Fact, RememberedTurn

SYSTEM: Final = (
    "You keep the long-term memory of an assistant. From the turns below, note what will still be worth knowing in "
    "later conversations with the same person: who they are, where they live and work, people and things they name as "
    "theirs, lasting preferences, standing wishes, decisions, plans with their dates, and whatever they ask to be "
    "remembered. Leave out small talk, one-off questions, general knowledge, what only the assistant said, guesses "
    "and anything secret such as passwords and keys. Do not repeat what is already known and unchanged. If something "
    'known has changed, use the same "about".\n'
    'Answer with a JSON array and nothing else. Each item is {"turn": number, "about": "two or three words", "fact": '
    '"one short sentence that stands alone, about the person"}. Nothing worth keeping: [].'
)
MAX_TOKENS: Final = 1500
_MOST: Final = 20
_SAID: Final = 4000


def prompt(turns: Sequence[RememberedTurn], known: Sequence[Fact]) -> str:
    about = [f'- "{_shown_key(fact.key)}": {fact.text}' for fact in known]
    told = "\n".join(["Already known:", *about]) if about else "Nothing is known yet."
    said = [
        f"Turn {turn.n}\nPerson: {_cut(plain_text(turn.user))}\nAssistant: {_cut(plain_text(turn.assistant))}"
        for turn in turns
    ]
    return "\n\n".join([told, *said])


def _shown_key(key: str) -> str:
    return "" if key.startswith(OWN_WORDS) else key


def _cut(text: str) -> str:
    return text if len(text) <= _SAID else f"{text[: _SAID // 2]} … {text[-_SAID // 2 :]}"


def drafts(answer: str, turns: Sequence[RememberedTurn]) -> list[Draft] | None:
    """None: it is not what was asked for."""
    items = _items(answer)
    if items is None:
        return None
    by_number = {turn.n: turn for turn in turns}
    return [draft for item in items[:_MOST] for draft in _draft(item, by_number, turns[-1])]


def _items(answer: str) -> list[Any] | None:
    """From the first bracket to the last one. Not by a regular expression: of many that open and none that closes it
    took seconds."""
    first, last = answer.find("["), answer.rfind("]")
    try:
        items = json.loads(answer[first : last + 1]) if 0 <= first < last else None
    except (ValueError, RecursionError):
        return None
    return items if isinstance(items, list) else None


def _draft(item: Any, by_number: dict[int, RememberedTurn], last: RememberedTurn) -> Iterator[Draft]:
    if not isinstance(item, dict):
        return
    fact, about, number = item.get("fact"), item.get("about"), item.get("turn")
    if isinstance(fact, str) and 2 < len(fact.strip()) <= MAX_TEXT:
        turn = by_number.get(number, last) if isinstance(number, int) else last
        yield Draft(fact.strip(), about[:80] if isinstance(about, str) else "", turn)

"""Extracts facts with rules: what people say about themselves in simple sentences, and what they ask to remember. The
rules prefer missing a fact to inventing one: they skip questions, suppositions, quotations and code. Pure. Used where
no model is available (`memory.builtin_provider`)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.core.parts import plain_text
from holdfast.memory.fact_drafts import FactDraft
from holdfast.ports.memory import RememberedTurn

_CODE: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*+`|^[^\S\n]*+>[^\n]*+$|\"[^\"\n]{12,}+\"|“[^“”\n]{12,}+”", re.DOTALL | re.MULTILINE
)
"""Takes linear time: no alternative passes over the character that begins it, and none gives back what it has read."""
_SENTENCE: Final = re.compile(r"[^.!?\n;]*(?:\.(?=\w)[^.!?\n;]*)*[.!?\n;]?")
_MAX_SENTENCE: Final = 240

_NAME: Final = r"(?P<x>[A-ZÀ-Þ][\w'’-]*(?: (?:[A-ZÀ-Þ][\w'’-]*|(?:van|von|de|der|la|bin)\b)){0,3})"
_PLACE: Final = r"(?P<x>(?:the )?[A-ZÀ-Þ][\w'’-]*(?:,? (?:[A-ZÀ-Þ][\w'’-]*|(?:am|an|der|de|del|la|upon|of)\b)){0,4})"
_THING: Final = (
    r"(?P<x>(?!(?:it|that|this|these|those|them|him|her|you|your|how|when|what|to know|the idea|the way)\b)"
    r"[\w'’-]+(?: (?!(?:and|but|because|so|when|if|since|although|though|or)\b)[\w'’-]+){0,5})"
)
_DATE: Final = (
    r"(?:on )?(?:the )?(?P<x>(?:[\w]+ )?(?:\d{1,4}[\w.:/-]*|January|February|March|April|May|June|July|August|"
    r"September|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)[\w ,.:/-]{0,24})"
)
_KIN: Final = (
    "wife|husband|partner|girlfriend|boyfriend|fiancée?|son|daughter|child|mother|mum|mom|father|dad|sister|brother|"
    "grandmother|grandfather|aunt|uncle|friend|boss|dog|cat|horse|rabbit|bird"
)
_I_AM: Final = r"\bI(?:'m|’m| am)"
_OFTEN: Final = r"(?: (?:really|also|usually|generally|still|now|absolutely|much|currently|just|always))*"


_END: Final = r"(?=\s*(?:[.,!;:)]|$|\band\b|\bbut\b|\bsince\b|\bfor\b|\bwith\b|\bnow\b|\bthese\b))"
_RULES: Final[Sequence[tuple[str, str, str]]] = (
    (rf"\b[Mm]y name(?: is|'s|’s) {_NAME}", "Name: {x}.", "name"),
    (rf"\b(?:[Pp]lease |[Yy]ou can |[Jj]ust )?[Cc]all me {_NAME}{_END}", "Name: {x}.", "name"),
    (rf"\bI{_OFTEN} live in {_PLACE}", "Lives in {x}.", "home"),
    (rf"{_I_AM}{_OFTEN} living in {_PLACE}", "Lives in {x}.", "home"),
    (rf"\bI(?:'ve|’ve| have)?{_OFTEN} moved to {_PLACE}", "Lives in {x}.", "home"),
    (rf"(?:{_I_AM}|\bI come) (?:originally )?from {_PLACE}", "Comes from {x}.", "origin"),
    (rf"\bI{_OFTEN} work (?:at|for) {_PLACE}", "Works for {x}.", "employer"),
    (
        rf"\bI{_OFTEN} work as an? (?P<x>[\w-]+(?: [\w-]+){{0,3}}?){_END}", "Works as {x}.", "profession",
    ),
    (rf"{_I_AM} an? (?P<x>[\w-]+(?: [\w-]+)?) by (?:profession|trade)", "Works as {x}.", "profession"),
    (rf"\b[Mm]y birthday is {_DATE}", "Birthday: {x}.", "birthday"),
    (rf"\bI was born (?:on |in ){_DATE}", "Born {x}.", "birthday"),
    (rf"\bI was born in {_PLACE}", "Born in {x}.", "place of birth"),
    (rf"{_I_AM} (?P<x>\d{{1,3}}) years old", "{x} years old.", "age"),
    (
        rf"\b[Mm]y (?P<y>{_KIN})(?:'s name is|’s name is| is called| is named) {_NAME}",
        "{y}: {x}.", "{y} name",
    ),
    (
        r"\b[Mm]y (?:favourite|favorite) (?P<y>[\w-]+(?: [\w-]+)?) (?:is|are) (?P<x>[\w'’-]+(?: [\w'’-]+){0,4})",
        "Favourite {y}: {x}.", "favourite {y}",
    ),
    (
        (rf"{_I_AM}{_OFTEN} allergic to "
         r"(?P<x>[\w'’-]+(?:(?:,| and| or|, and)? (?!(?:but|so|because)\b)[\w'’-]+){0,5})"),
        "Is allergic to {x}.", "allergies",
    ),
    (rf"{_I_AM}{_OFTEN} (?:an? )?(?P<x>vegan|vegetarian|pescatarian)\b", "Is {x}.", "diet"),
    (rf"\bI{_OFTEN} prefer {_THING}", "Prefers {x}.", ""),
    (rf"\bI{_OFTEN} (?:love|enjoy|like) {_THING}", "Likes {x}.", "opinion {x}"),
    (
        rf"\bI{_OFTEN} (?:hate|dislike|can(?:'|’|no)t stand|do(?:n't|n’t| not) like) {_THING}",
        "Does not like {x}.", "opinion {x}",
    ),
    (rf"\bI{_OFTEN} speak (?P<x>[A-Z]\w+(?:(?:,| and|, and) [A-Z]\w+)*)", "Speaks {x}.", "languages"),
    (
        r"\b[Mm]y (?P<y>e-?mail(?: address)?|phone(?: number)?|telephone number) is (?P<x>[\w.+@()/ -]{4,60}\w)",
        "{y}: {x}.", "{y}",
    ),
    (
        rf"\b[Mm]y (?P<y>(?:\w+ )?(?:appointment|deadline|flight|exam|wedding|interview|trip|surgery)) is {_DATE}",
        "{y}: {x}.", "{y}",
    ),
)  # fmt: skip
"""A pattern, the fact and its topic; `{x}` and `{y}` are the groups. The case of letters counts. Facts do not name the
person: models are told whom they are about, and people read them about themselves."""
_REMEMBER: Final = re.compile(
    r"^(?:(?:please|and|also|ok|okay|so),? )*(?:can you |could you )?"
    r"(?:remember|do(?:n't|n’t| not) forget|keep in mind|make a note|note down)(?: that|:|,)\s*(?P<x>\S.{3,})$",
    re.IGNORECASE,
)
_WISH: Final = re.compile(
    r"^(?:please,? )?(?:from now on,? )?(?:please,? )?(?P<x>(?:always|never) (?:answer|reply|respond|write|use|call|"
    r"say|include|give|explain|start|end|ask|address|speak|talk|format|suggest|mention)\b.{2,})$",
    re.IGNORECASE,
)


def extract(turns: Sequence[RememberedTurn]) -> list[FactDraft]:
    """Facts in the order of the turns."""
    return [
        draft for turn in turns for sentence in _sentences(plain_text(turn.user)) for draft in _read(sentence, turn)
    ]


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(_CODE.sub(" ", text)):
        sentence = " ".join(match.group().split())
        if 3 < len(sentence) <= _MAX_SENTENCE and not sentence.endswith("?"):
            yield sentence


def _read(sentence: str, turn: RememberedTurn) -> list[FactDraft]:
    request = _REMEMBER.match(sentence)
    content = request["x"] if request else sentence
    found = [FactDraft(text, about, turn) for text, about in _facts(content)]
    if found:
        return found
    if request:
        return [FactDraft(f"Asked to remember: {content.rstrip('.! ')}.", "", turn)]
    wish = _WISH.match(sentence)
    return [FactDraft(f"Wishes: {wish['x'].rstrip('.! ')}.", "", turn)] if wish else []


def _facts(sentence: str) -> Iterator[tuple[str, str]]:
    if re.match(r"(?i)^(?:if|when|imagine|suppose|pretend|what if|let's say|assume)\b", sentence):
        return
    for pattern, text, about in _RULES:
        if match := re.search(pattern, sentence):
            groups = {name: " ".join((value or "").split()).rstrip(",. ") for name, value in match.groupdict().items()}
            fact = text.format(**groups)
            yield fact[:1].upper() + fact[1:], about.format(**{name: value.lower() for name, value in groups.items()})

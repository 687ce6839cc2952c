"""Words, keywords and topics of a text, normalized for comparison. Pure."""

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_STOP_WORDS: Final = """
    a about after again ago all also am an and any are as at be because been before being both but by can could did do
    does doing done down each else ever every few for from further get gets give go goes going good got had has have
    having he hello help her here hers hey hi him himself his how i i'd i'll i'm i've if in into is isn't it it's its
    itself just know let like made make many me more most much my myself need no nor not now of off ok on once one only
    or other our ours out over own person person's please put said same say she should so some such tell than thanks
    that that's the their theirs them then there these they thing things this those through to too two under until up
    us use user very want wants was we well were what what's when where which while who whom whose why will with would
    yes yet you your yours yourself
    aber als am an auch auf aus bei bin bis bist da das dass dein dem den der des die dir dich doch du ein eine einem
    einen einer er es für hat habe haben hast ich ihr im in ist ja kann kein man mein mich mir mit nach nicht noch nur
    oder sich sie sind so um und uns von war was wenn wer wie wir wird wo zu zum zur
    """
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

_TOPICS: Final = {
    "home": "live lives living home city town address moved wohne",
    "name": "name called heiße",
    "birthday": "birthday born birth geburtstag",
    "work": "job work works working profession employer company arbeite",
    "age": "old age years",
    "food": "eat food diet vegetarian vegan allergic allergy cook recipe dinner",
    "family": "wife husband partner son daughter mother father sister brother",
    "language": "language speak speaks sprache",
}


def fold(text: str) -> str:
    """The text in lower case and without accents."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if not unicodedata.combining(char))


def words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(fold(text))]


def keywords(text: str) -> list[str]:
    """The words without stop words, each once, in order."""
    found = [word.removesuffix("'s") for word in words(text)]
    return list(dict.fromkeys(word for word in found if len(word) > 1 and word not in STOP_WORDS))


def topics(text: str) -> list[str]:
    """Topics that a word of the text indicates."""
    found = set(words(text))
    return [topic for topic, cues in _TOPICS.items() if not found.isdisjoint(cues.split())]


def topic_key(text: str) -> str:
    """The normalized name of a topic."""
    kept = [word.removesuffix("'s") for word in words(text)]
    return " ".join(
        word for word in kept if word not in {"the", "a", "an", "my", "user", "person", "their", "his", "her"}
    )
